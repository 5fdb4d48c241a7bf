#include "graph/ops/dropout.h"

#include "base/error.h"
#include "base/random.h"
#include "kernels/dropout.h"

namespace echelon::ops {

namespace {

Stream stream_of(const StepContext& step, std::uint32_t layer) {
  return Stream({.seed = step.seed, .step = step.step, .shard = step.shard, .layer = layer});
}

class Dropout : public Op {
 public:
  Dropout(float p, std::uint32_t layer, std::uint64_t first = 0) : p_(p), layer_(layer), first_(first) {}
  std::string_view name() const override { return "dropout"; }
  std::string detail() const override { return fmt::format("p {}", p_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (!(p_ >= 0 && p_ < 1)) bad_input("the probability must be in [0, 1), not {}", p_);
    return {f32(in[0].shape)};
  }
  // Linear in x with a mask that is a pure function of where we are: its gradient is itself.
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<Dropout>(p_, layer_, first_), {d_out[0]})};
  }
  bool works_by_rows() const override { return true; }
  std::shared_ptr<const Op> for_rows_from(std::int64_t element) const override {
    return std::make_shared<Dropout>(p_, layer_, first_ + static_cast<std::uint64_t>(element));
  }
  // Every slice has a stream of its own, so that it need not know how large the whole is.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    auto rule = follow_cut(q);
    if (rule)
      rule->op = [p = p_, layer = layer_](int slice) {
        return std::make_shared<Dropout>(p, (layer ^ static_cast<std::uint32_t>(slice + 1)) * 16777619u);
      };
    return rule;
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [p = p_, layer = layer_, first = first_, x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](
               const StepContext& step) { kernels::dropout(stream_of(step, layer), p, x, y, n, first); };
  }

 private:
  float p_;
  std::uint32_t layer_;
  std::uint64_t first_;  // of the elements that it is for
};

class NormalNoise : public Op {
 public:
  NormalNoise(Shape shape, std::uint32_t layer) : shape_(shape), layer_(layer) {}
  std::string_view name() const override { return "normal_noise"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(shape_)}; }
  Kernel compile(const Operands& o) const override {
    return [layer = layer_, y = std::span(o.out[0].f32(), o.out[0].stored())](const StepContext& step) {
      kernels::fill_normal(stream_of(step, layer), 0, y);
    };
  }

 private:
  Shape shape_;
  std::uint32_t layer_;
};

// Each use within a graph gets a stream of its own, named by its place.
std::uint32_t fresh_stream(Graph& g, const char* kind) {
  return stream_layer((g.layer() + "/" + g.unique_name(kind)).c_str());
}

}  // namespace

Value dropout(Graph& g, Value x, float p) {
  if (!g.training() || p == 0) return x;
  return g.add_one(std::make_shared<Dropout>(p, fresh_stream(g, "dropout stream")), {x});
}

Value normal_noise(Graph& g, Shape shape) {
  return g.add_one(std::make_shared<NormalNoise>(shape, fresh_stream(g, "noise stream")), {});
}

}  // namespace echelon::ops
