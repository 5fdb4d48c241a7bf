#include "graph/ops/attention.h"

#include <cstring>

#include "base/error.h"
#include "graph/attributes.h"
#include "kernels/attention/attention.h"

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

class Attention : public AttentionBase, public WithAttributes {
 public:
  using AttentionBase::AttentionBase;
  std::string_view name() const override { return "attention"; }
  Attributes attributes() const override { return {{"heads", heads_}, {"causal", causal_}}; }
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

kernels::AttentionShape cross_shape(const Shape& q, const Shape& kv, int heads) {
  return {.batch = q[0], .heads = heads, .dim = q[2] / heads, .queries = q[1], .keys = kv[1]};
}
kernels::AttentionInput cross_input(const Shape& q, const Shape& kv, const float* queries, const float* keys) {
  return {queries, keys, keys + q[2], {q[1] * q[2], q[2]}, {kv[1] * kv[2], kv[2]}};
}
double cross_flops(const Shape& q, const Shape& kv, double products) {
  return products * 2.0 * static_cast<double>(q[0] * q[2]) * static_cast<double>(q[1]) * static_cast<double>(kv[1]);
}

// (q, kv, y, saved, dy) -> dq, dkv
class CrossAttentionGrad : public Op {
 public:
  explicit CrossAttentionGrad(int heads) : heads_(heads) {}
  std::string_view name() const override { return "cross_attention_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[1].shape)}; }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    return cross_flops(in[0].shape, in[1].shape, 4);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::attention_scratch(cross_shape(in[0].shape, in[1].shape, heads_));
  }
  Kernel compile(const Operands& o) const override {
    const Shape &q = o.in[0].type.shape, &kv = o.in[1].type.shape;
    const kernels::AttentionGrad grad{
        o.out[0].f32(), o.out[1].f32(), o.out[1].f32() + q[2], {q[1] * q[2], q[2]}, {kv[1] * kv[2], kv[2]}};
    return [s = cross_shape(q, kv, heads_), in = cross_input(q, kv, o.in[0].f32(), o.in[1].f32()), y = o.in[2].f32(),
            saved = o.in[3].f32(), dy = o.in[4].f32(), grad, scratch = o.scratch](const StepContext&) {
      kernels::attention_backward(s, in, y, saved, dy, grad, scratch);
    };
  }

 private:
  int heads_;
};

class CrossAttention : public Op, public WithAttributes {
 public:
  explicit CrossAttention(int heads) : heads_(heads) {}
  std::string_view name() const override { return "cross_attention"; }
  Attributes attributes() const override { return {{"heads", heads_}}; }
  std::string detail() const override { return fmt::format("{} heads", heads_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &q = in[0].shape, &kv = in[1].shape;
    if (q.rank() != 3 || kv.rank() != 3 || heads_ < 1 || q[2] % heads_ != 0 || kv[0] != q[0] || kv[2] != 2 * q[2])
      bad_input(
          "needs [batch, time, width] with a width that {} heads divide, and [batch, other, 2 * width], not {} and "
          "{}",
          heads_, to_string(q), to_string(kv));
    return {f32(q),
            f32({static_cast<std::int64_t>(kernels::attention_saved(cross_shape(q, kv, heads_)) / sizeof(float))})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return g.add(std::make_shared<CrossAttentionGrad>(heads_),
                 {node.in[0], node.in[1], node.out[0], node.out[1], d_out[0]});
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    return cross_flops(in[0].shape, in[1].shape, 2);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::attention_scratch(cross_shape(in[0].shape, in[1].shape, heads_));
  }
  Kernel compile(const Operands& o) const override {
    const Shape &q = o.in[0].type.shape, &kv = o.in[1].type.shape;
    return [s = cross_shape(q, kv, heads_), in = cross_input(q, kv, o.in[0].f32(), o.in[1].f32()), y = o.out[0].f32(),
            saved = o.out[1].f32(),
            scratch = o.scratch](const StepContext&) { kernels::attention_forward(s, in, y, saved, scratch); };
  }

 private:
  int heads_;
};

// (qkv, cache, position) -> y, cache, what attention saves (nobody reads it)
class CachedAttention : public Op {
 public:
  explicit CachedAttention(int heads) : heads_(heads) {}
  std::string_view name() const override { return "cached_attention"; }
  std::string detail() const override { return fmt::format("{} heads", heads_); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &qkv = in[0].shape, &cache = in[1].shape;
    if (qkv.rank() != 3 || qkv[1] != 1 || heads_ < 1 || qkv[2] % (3 * heads_) != 0 || cache.rank() != 3 ||
        cache[0] != qkv[0] || 3 * cache[2] != 2 * qkv[2] || in[2].dtype != DType::i32 || in[2].elements() != 1)
      bad_input(
          "needs [batch, 1, 3 * width] with a width that {} heads divide, a cache [batch, room, 2 * width] and one "
          "position, not {}, {} and {}",
          heads_, to_string(in[0]), to_string(in[1]), to_string(in[2]));
    return {f32({qkv[0], 1, qkv[2] / 3}), f32(cache),
            f32({static_cast<std::int64_t>(kernels::attention_saved(full_shape(in)) / sizeof(float))})};
  }
  int overwrites(int out) const override { return out == 1 ? 1 : -1; }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::attention_scratch(full_shape(in));
  }
  Kernel compile(const Operands& o) const override {
    const std::vector<Type> in{o.in[0].type, o.in[1].type, o.in[2].type};
    const std::int64_t width = o.out[0].type.shape[2], room = o.in[1].type.shape[1];
    return [s = full_shape(in), width, room, qkv = o.in[0].f32(), old = o.in[1].f32(), position = o.in[2].i32(),
            y = o.out[0].f32(), cache = o.out[1].f32(), bytes = o.out[1].type.bytes(), saved = o.out[2].f32(),
            scratch = o.scratch](const StepContext&) mutable {
      if (*position < 0 || *position >= room) bad_input("position {} has no place in a cache of {}", *position, room);
      if (cache != old) std::memcpy(cache, old, bytes);
      for (std::int64_t b = 0; b < s.batch; ++b)
        std::memcpy(cache + (b * room + *position) * 2 * width, qkv + b * 3 * width + width,
                    static_cast<std::size_t>(2 * width) * sizeof(float));
      s.keys = *position + 1;
      kernels::attention_forward(s, {qkv, cache, cache + width, {3 * width, 3 * width}, {room * 2 * width, 2 * width}},
                                 y, saved, scratch);
    };
  }

 private:
  kernels::AttentionShape full_shape(std::span<const Type> in) const {
    const Shape& qkv = in[0].shape;
    return {.batch = qkv[0], .heads = heads_, .dim = qkv[2] / (3 * heads_), .queries = 1, .keys = in[1].shape[1]};
  }
  int heads_;
};

}  // namespace

Value cross_attention(Graph& g, Value q, Value kv, int heads) {
  return g.add(std::make_shared<CrossAttention>(heads), {q, kv})[0];
}

Attended cached_attention(Graph& g, Value qkv, Value cache, Value position, int heads) {
  const auto out = g.add(std::make_shared<CachedAttention>(heads), {qkv, cache, position});
  return {out[0], out[1]};
}

Value attention(Graph& g, Value qkv, int heads, bool causal) {
  return g.add(std::make_shared<Attention>(heads, causal), {qkv})[0];
}

}  // namespace echelon::ops
