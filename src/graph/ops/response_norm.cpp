#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/norm.h"
#include "kernels/norm/lrn.h"

namespace echelon::ops {

namespace {

class ResponseNormBase : public Op {
 public:
  explicit ResponseNormBase(const kernels::LrnShape& settings) : settings_(settings) {}
  std::string detail() const override { return fmt::format("{} channels", settings_.size); }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::lrn_scratch(shape_of(in[0]), in[0].layout);
  }

 protected:
  kernels::LrnShape shape_of(const Type& x) const {
    kernels::LrnShape s = settings_;
    s.n = x.shape[0], s.c = x.shape[1], s.pixels = x.shape[2] * x.shape[3];
    return s;
  }
  kernels::LrnShape settings_;
};

class ResponseNormGrad : public ResponseNormBase {
 public:
  using ResponseNormBase::ResponseNormBase;
  std::string_view name() const override { return "local_response_norm_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    return [s = shape_of(o.in[0].type), layout = o.in[0].type.layout, x = o.in[0].f32(), dy = o.in[1].f32(),
            dx = o.out[0].f32(),
            scratch = o.scratch](const StepContext&) { kernels::lrn_backward(s, layout, x, dy, dx, scratch); };
  }
};

class ResponseNorm : public ResponseNormBase, public WithAttributes {
 public:
  using ResponseNormBase::ResponseNormBase;
  std::string_view name() const override { return "local_response_norm"; }
  Attributes attributes() const override {
    return {{"size", static_cast<double>(settings_.size)},
            {"alpha", double{settings_.alpha}},
            {"beta", double{settings_.beta}},
            {"k", double{settings_.k}}};
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(in[0].shape));
    if (settings_.size < 1) bad_input("the window must have at least one channel, not {}", settings_.size);
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<ResponseNormGrad>(settings_), {node.in[0], d_out[0]})};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    return row_by_row(follow_cut_except(q, 1));
  }
  Kernel compile(const Operands& o) const override {
    return [s = shape_of(o.in[0].type), layout = o.in[0].type.layout, x = o.in[0].f32(), y = o.out[0].f32(),
            scratch = o.scratch](const StepContext&) { kernels::lrn_forward(s, layout, x, y, scratch); };
  }
};

}  // namespace

Value local_response_norm(Graph& g, Value x, int size, float alpha, float beta, float k) {
  const kernels::LrnShape settings{.size = size, .alpha = alpha, .beta = beta, .k = k};
  return g.add_one(std::make_shared<ResponseNorm>(settings), {x});
}

}  // namespace echelon::ops
