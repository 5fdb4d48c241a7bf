#include "graph/ops/group_norm.h"

#include "base/error.h"
#include "graph/attributes.h"
#include "kernels/norm/group_norm.h"

namespace echelon::ops {

namespace {

kernels::GroupNormShape group_shape(const Shape& x, int groups) {
  const auto samples = static_cast<std::size_t>(x[0]), channels = static_cast<std::size_t>(x[1]);
  const auto elements = static_cast<std::size_t>(x.elements());
  return {.samples = samples,
          .channels = channels,
          .inner = elements == 0 ? 0 : elements / (samples * channels),
          .groups = static_cast<std::size_t>(groups)};
}

// (x, gamma, mean, rstd, dy) -> dx, dgamma, dbeta
class GroupNormGrad : public Op {
 public:
  explicit GroupNormGrad(int groups) : groups_(groups) {}
  std::string_view name() const override { return "group_norm_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    return {f32(in[0].shape), f32(in[1].shape), f32(in[1].shape)};
  }
  int overwrites(int out) const override { return out == 0 ? 4 : -1; }
  Kernel compile(const Operands& o) const override {
    return [s = group_shape(o.in[0].type.shape, groups_), x = o.in[0].f32(), gamma = o.in[1].f32(),
            mean = o.in[2].f32(), rstd = o.in[3].f32(), dy = o.in[4].f32(), dx = o.out[0].f32(),
            dgamma = o.out[1].f32(), dbeta = o.out[2].f32()](const StepContext&) {
      kernels::group_norm_grad(s, x, gamma, mean, rstd, dy, dx, dgamma, dbeta);
    };
  }

 private:
  int groups_;
};

class GroupNorm : public Op, public WithAttributes {
 public:
  GroupNorm(int groups, float eps) : groups_(groups), eps_(eps) {}
  std::string_view name() const override { return "group_norm"; }
  Attributes attributes() const override { return {{"groups", groups_}, {"eps", double{eps_}}}; }
  std::string detail() const override { return fmt::format("{} groups", groups_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& x = in[0].shape;
    if (x.rank() < 2 || groups_ < 1 || x[1] % groups_ != 0)
      bad_input("needs [N, C, ...] with channels that {} groups divide, not {}", groups_, to_string(x));
    if (!(in[1].shape == Shape{x[1]}) || !(in[2].shape == Shape{x[1]}))
      bad_input("input {} does not fit scale {} and shift {}", to_string(x), to_string(in[1].shape),
                to_string(in[2].shape));
    return {f32(x), f32({x[0] * groups_}), f32({x[0] * groups_})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return g.add(std::make_shared<GroupNormGrad>(groups_),
                 {node.in[0], node.in[1], node.out[1], node.out[2], d_out[0]});
  }
  Kernel compile(const Operands& o) const override {
    return [eps = eps_, s = group_shape(o.in[0].type.shape, groups_), x = o.in[0].f32(), gamma = o.in[1].f32(),
            beta = o.in[2].f32(), y = o.out[0].f32(), mean = o.out[1].f32(),
            rstd = o.out[2].f32()](const StepContext&) { kernels::group_norm(s, x, gamma, beta, eps, y, mean, rstd); };
  }

 private:
  int groups_;
  float eps_;
};

}  // namespace

Value group_norm(Graph& g, Value x, Value gamma, Value beta, int groups, float eps) {
  return g.add(std::make_shared<GroupNorm>(groups, eps), {x, gamma, beta})[0];
}

}  // namespace echelon::ops
