#include "graph/ops/batch_matmul.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "kernels/gemm/gemm.h"

namespace echelon::ops {

namespace {

class BatchMatMul : public Op, public WithAttributes {
 public:
  BatchMatMul(bool ta, bool tb) : ta_(ta), tb_(tb) {}
  std::string_view name() const override { return "batch_matmul"; }
  std::string detail() const override { return fmt::format("{}{}", ta_ ? "a^T" : "a", tb_ ? " b^T" : " b"); }
  Attributes attributes() const override { return {{"transpose_a", ta_}, {"transpose_b", tb_}}; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &a = in[0].shape, &b = in[1].shape;
    bool fits = a.rank() == b.rank() && a.rank() >= 3 && in[0].dtype == DType::f32 && in[1].dtype == DType::f32;
    for (int i = 0; fits && i < a.rank() - 2; ++i) fits = a[i] == b[i];
    if (!fits || a[ta_ ? -2 : -1] != b[tb_ ? -1 : -2])
      bad_input("matrices {}{} and {}{} cannot be multiplied", to_string(a), ta_ ? "^T" : "", to_string(b),
                tb_ ? "^T" : "");
    Shape out = a;
    out[-2] = a[ta_ ? -1 : -2], out[-1] = b[tb_ ? -2 : -1];
    return {f32(out)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const Value a = node.in[0], b = node.in[1], dy = d_out[0];
    Value da, db;
    if (wanted[0]) da = ta_ ? batch_matmul(g, b, dy, tb_, true) : batch_matmul(g, dy, b, false, !tb_);
    if (wanted[1]) db = tb_ ? batch_matmul(g, dy, a, true, ta_) : batch_matmul(g, a, dy, !ta_, false);
    return {da, db};
  }
  double flops(std::span<const Type> in, std::span<const Type> out) const override {
    return 2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(in[0].shape[ta_ ? -2 : -1]);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type> out) const override {
    return kernels::gemm_scratch(product(in[0], out[0]));
  }
  Kernel compile(const Operands& o) const override {
    const Shape a = o.in[0].type.shape, b = o.in[1].type.shape;
    const kernels::Gemm p = product(o.in[0].type, o.out[0].type);
    const std::int64_t each = p.m * p.n, count = each == 0 ? 0 : o.out[0].type.elements() / each;
    return [p, count, each, lda = a[-1], ldb = b[-1], a_each = a[-2] * a[-1], b_each = b[-2] * b[-1], x = o.in[0].f32(),
            w = o.in[1].f32(), y = o.out[0].f32(), scratch = o.scratch](const StepContext&) {
      for (std::int64_t i = 0; i < count; ++i)
        kernels::gemm(p, x + i * a_each, lda, w + i * b_each, ldb, y + i * each, p.n, scratch);
    };
  }

 private:
  kernels::Gemm product(const Type& a, const Type& c) const {
    return {.trans_a = ta_, .trans_b = tb_, .m = c.shape[-2], .n = c.shape[-1], .k = a.shape[ta_ ? -2 : -1]};
  }
  bool ta_, tb_;
};

// Forward: what comes later gets `value_`. The gradient is the same op with zero.
class CausalMask : public Op {
 public:
  explicit CausalMask(float value) : value_(value) {}
  std::string_view name() const override { return value_ == 0 ? "causal_mask_grad" : "causal_mask"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() < 2 || in[0].dtype != DType::f32)
      bad_input("needs scores [.., queries, keys], not {}", to_string(in[0]));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<CausalMask>(0.0f), {d_out[0]})};
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    const Shape& s = o.in[0].type.shape;
    return [value = value_, rows = s[-2], cols = s[-1], n = s.elements(), x = o.in[0].f32(),
            y = o.out[0].f32()](const StepContext&) {
      for (std::int64_t at = 0, i = 0; at < n; at += cols, i = i + 1 == rows ? 0 : i + 1) {
        const std::int64_t seen = std::min(i + 1, cols);
        if (x != y) std::copy_n(x + at, seen, y + at);
        std::fill(y + at + seen, y + at + cols, value);
      }
    };
  }

 private:
  float value_;
};

}  // namespace

Value batch_matmul(Graph& g, Value a, Value b, bool transpose_a, bool transpose_b) {
  return g.add_one(std::make_shared<BatchMatMul>(transpose_a, transpose_b), {a, b});
}

Value causal_mask(Graph& g, Value scores) { return g.add_one(std::make_shared<CausalMask>(-1e30f), {scores}); }

}  // namespace echelon::ops
