#include "graph/ops/attention.h"

#include "base/error.h"
#include "kernels/attention.h"

namespace echelon::ops {

namespace {

class AttentionBase : public Op {
 public:
  AttentionBase(int heads, bool causal) : heads_(heads), causal_(causal) {}
  std::string detail() const override { return fmt::format("{} heads{}", heads_, causal_ ? " causal" : ""); }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::attention_scratch(shape_of(in[0]));
  }

 protected:
  kernels::AttentionShape shape_of(const Type& qkv) const {
    const Shape& s = qkv.shape;
    return {
        .batch = s[0], .heads = heads_, .dim = s[2] / (3 * heads_), .queries = s[1], .keys = s[1], .causal = causal_};
  }
  // Two products over the pairs of positions that can see each other; the causal mask leaves about half of them.
  double pair_flops(const Type& qkv, double products) const {
    const auto s = shape_of(qkv);
    const double t = static_cast<double>(s.queries), pairs = causal_ ? t * (t + 1) / 2 : t * t;
    return products * 2.0 * static_cast<double>(s.batch * s.heads * s.dim) * pairs;
  }
  int heads_;
  bool causal_;
};

class AttentionGrad : public AttentionBase {
 public:
  using AttentionBase::AttentionBase;
  std::string_view name() const override { return "attention_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  double flops(std::span<const Type> in, std::span<const Type>) const override { return pair_flops(in[0], 4); }
  Kernel compile(const Operands& o) const override {
    const auto s = shape_of(o.in[0].type);
    return [s, in = kernels::split_qkv(s, o.in[0].f32()), y = o.in[1].f32(), saved = o.in[2].f32(), dy = o.in[3].f32(),
            grad = kernels::split_dqkv(s, o.out[0].f32()), scratch = o.scratch](const StepContext&) {
      kernels::attention_backward(s, in, y, saved, dy, grad, scratch);
    };
  }
};

class Attention : public AttentionBase {
 public:
  using AttentionBase::AttentionBase;
  std::string_view name() const override { return "attention"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& s = in[0].shape;
    if (s.rank() != 3 || heads_ < 1 || s[2] % (3 * heads_) != 0)
      bad_input("needs [batch, time, 3 * width] with a width that {} heads divide, not {}", heads_, to_string(s));
    return {f32({s[0], s[1], s[2] / 3}),
            f32({static_cast<std::int64_t>(kernels::attention_saved(shape_of(in[0])) / sizeof(float))})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {
        g.add_one(std::make_shared<AttentionGrad>(heads_, causal_), {node.in[0], node.out[0], node.out[1], d_out[0]})};
  }
  int blocks(int) const override { return 3; }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (!(q.arrives[0] == Cut{2, 3})) return {};
    return SliceRule{
        .in = {q.arrives[0]},
        .out = {{2}, {Cut::inner}},
        .units = heads_,
        .unit = "heads",
        .op = [part = heads_ / q.slices, causal = causal_](int) { return std::make_shared<Attention>(part, causal); }};
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override { return pair_flops(in[0], 2); }
  Kernel compile(const Operands& o) const override {
    const auto s = shape_of(o.in[0].type);
    return [s, in = kernels::split_qkv(s, o.in[0].f32()), y = o.out[0].f32(), saved = o.out[1].f32(),
            scratch = o.scratch](const StepContext&) { kernels::attention_forward(s, in, y, saved, scratch); };
  }
};

}  // namespace

Value attention(Graph& g, Value qkv, int heads, bool causal) {
  return g.add(std::make_shared<Attention>(heads, causal), {qkv})[0];
}

}  // namespace echelon::ops
