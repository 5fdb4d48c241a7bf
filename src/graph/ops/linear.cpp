#include "graph/ops/linear.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/grid.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"
#include "kernels/elementwise.h"
#include "kernels/gemm/gemm.h"
#include "kernels/reduce.h"

namespace echelon::ops {

namespace {

std::int64_t rows_of(const Type& x) { return x.elements() / x.shape[-1]; }

class Linear : public Op {
 public:
  explicit Linear(bool relu) : relu_(relu) {}
  bool relu() const { return relu_; }

  std::string_view name() const override { return relu_ ? "linear_relu" : "linear"; }
  int weights_input() const override { return 1; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[0].shape, &w = in[1].shape;
    if (x.rank() < 2 || w.rank() != 2 || x[-1] != w[1])
      bad_input("input {} does not fit weights {}: the input's last extent must be the weights' second", to_string(x),
                to_string(w));
    if (in.size() > 2 && !(in[2].shape == Shape{w[0]}))
      bad_input("bias {} does not fit weights {}", to_string(in[2].shape), to_string(w));
    Shape y = x;
    y[-1] = w[0];
    return {f32(y)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const Value x = node.in[0], w = node.in[1], dy = d_out[0];
    const Type tx = g.type(x), ty = g.type(dy);
    auto as_matrix = [&](Value v, const Type& t) {
      return t.shape.rank() == 2 ? v : reshape(g, v, {rows_of(t), t.shape[-1]});
    };
    std::vector<Value> d(node.in.size());
    const Value dy2 = as_matrix(dy, ty);
    if (wanted[1]) d[1] = matmul(g, dy2, as_matrix(x, tx), true, false);
    if (node.in.size() > 2 && wanted[2]) d[2] = sum_to_tail(g, dy2, {ty.shape[-1]});
    if (wanted[0]) {
      d[0] = matmul(g, dy2, w);
      if (tx.shape.rank() != 2) d[0] = reshape(g, d[0], tx.shape);
    }
    return d;
  }
  // Features that arrive cut meet their columns of the weights, and the products are added up. Whole features give each
  // slice some of the outputs.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (auto grid = grid_rule(q)) return grid;
    const int features = q.in[0].shape.rank() - 1;
    const bool bias = q.in.size() > 2;
    const Cut x = q.arrives[0], w = q.arrives[1];  // weights that are cut already decide
    SliceRule rule{.in = {x, {}}, .out = {x}};
    if (w.is_whole() ? x.axis == features : w.axis == 1) {
      const int blocks = w.is_whole() ? x.blocks : w.blocks;
      rule.in = {{features, blocks}, {1, blocks}};
      rule.join = add_up_slices;
      if (bias) rule.in.emplace_back(), rule.first_only = 2;
      return rule;
    }
    if (x.axis >= 0 && x.axis != features) {
      if (bias) rule.in.emplace_back();
      return rule;
    }
    const std::int64_t out = q.in[1].shape[0];
    if (q.last && out < q.slices) return {};
    const int blocks = w.is_whole() ? q.blocks : w.blocks;
    rule.in = {{}, {0, blocks}};
    if (bias) rule.in.push_back({0, blocks});
    rule.out[0] = {features, blocks};
    if (!q.last) rule.units = out / blocks, rule.unit = "outputs";
    return rule;
  }
  double flops(std::span<const Type> in, std::span<const Type> out) const override {
    return 2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(in[1].shape[1]);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::linear_scratch(shape_of(in[0], in[1]));
  }
  Kernel compile(const Operands& o) const override {
    const auto s = shape_of(o.in[0].type, o.in[1].type);
    const float* bias = o.in.size() > 2 ? o.in[2].f32() : nullptr;
    return [s, relu = relu_, bias, x = o.in[0].f32(), w = o.in[1].f32(), y = o.out[0].f32(),
            scratch = o.scratch](const StepContext&) {
      kernels::linear_forward(s, x, w, relu ? nullptr : bias, y, scratch);
      if (relu) finish(s, bias, y);
    };
  }

 private:
  static void finish(const kernels::LinearShape& s, const float* bias, float* y) {
    const auto rows = static_cast<std::size_t>(s.rows), cols = static_cast<std::size_t>(s.out);
    if (bias) {
      kernels::add_row_bias(y, bias, rows, cols, true);
    } else {
      const float* in[] = {y};
      const kernels::EwStep program[] = {{kernels::Ew::relu, 0, -1, 0}};
      kernels::elementwise(program, in, y, rows * cols);
    }
  }
  static kernels::LinearShape shape_of(const Type& x, const Type& w) {
    return {.rows = rows_of(x), .in = w.shape[1], .out = w.shape[0]};
  }
  bool relu_;
};

class MatMul : public Op, public WithAttributes {
 public:
  MatMul(bool ta, bool tb) : ta_(ta), tb_(tb) {}
  std::string_view name() const override { return "matmul"; }
  Attributes attributes() const override { return {{"transpose_a", ta_}, {"transpose_b", tb_}}; }
  std::string detail() const override { return fmt::format("{}{}", ta_ ? "a^T" : "a", tb_ ? " b^T" : " b"); }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &a = in[0].shape, &b = in[1].shape;
    if (a.rank() != 2 || b.rank() != 2 || a[ta_ ? 0 : 1] != b[tb_ ? 1 : 0])
      bad_input("matrices {}{} and {}{} cannot be multiplied", to_string(a), ta_ ? "^T" : "", to_string(b),
                tb_ ? "^T" : "");
    return {f32({a[ta_ ? 1 : 0], b[tb_ ? 0 : 1]})};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const Value a = node.in[0], b = node.in[1], dy = d_out[0];
    Value da, db;
    if (wanted[0]) da = ta_ ? matmul(g, b, dy, tb_, true) : matmul(g, dy, b, false, !tb_);
    if (wanted[1]) db = tb_ ? matmul(g, dy, a, true, ta_) : matmul(g, a, dy, !ta_, false);
    return {da, db};
  }
  double flops(std::span<const Type> in, std::span<const Type> out) const override {
    return 2.0 * static_cast<double>(out[0].elements()) * static_cast<double>(in[0].shape[ta_ ? 0 : 1]);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type> out) const override {
    return kernels::gemm_scratch(product(in[0], out[0]));
  }
  Kernel compile(const Operands& o) const override {
    return [p = product(o.in[0].type, o.out[0].type), a = o.in[0].f32(), lda = o.in[0].type.shape[1], b = o.in[1].f32(),
            ldb = o.in[1].type.shape[1], c = o.out[0].f32(),
            scratch = o.scratch](const StepContext&) { kernels::gemm(p, a, lda, b, ldb, c, p.n, scratch); };
  }
  bool is_transposed_product() const { return ta_ && !tb_; }

 private:
  kernels::Gemm product(const Type& a, const Type& c) const {
    return {.trans_a = ta_, .trans_b = tb_, .m = c.shape[0], .n = c.shape[1], .k = a.shape[ta_ ? 0 : 1]};
  }
  bool ta_, tb_;
};

bool is_tail(const Shape& whole, const Shape& tail) {
  const int skip = whole.rank() - tail.rank();
  if (skip < 0) return false;
  for (int i = 0; i < tail.rank(); ++i)
    if (whole[skip + i] != tail[i]) return false;
  return true;
}

class AddTail : public Op {
 public:
  std::string_view name() const override { return "add_tail"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (!is_tail(in[0].shape, in[1].shape))
      bad_input("{} is not the tail of {}", to_string(in[1].shape), to_string(in[0].shape));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    return {d_out[0], wanted[1] ? sum_to_tail(g, d_out[0], g.type(node.in[1]).shape) : Value{}};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const Cut cut = q.arrives[0];
    if (cut.axis < 0) return {};
    const int skip = q.in[0].shape.rank() - q.in[1].shape.rank();
    const Cut tail = cut.axis < skip ? Cut{} : Cut{cut.axis - skip, cut.blocks};
    return SliceRule{.in = {cut, tail}, .out = {cut}};
  }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    const auto cols = static_cast<std::size_t>(o.in[1].type.elements()), n = o.out[0].stored();
    return [x = o.in[0].f32(), b = o.in[1].f32(), y = o.out[0].f32(), cols, n](const StepContext&) {
      if (x != y) std::copy_n(x, n, y);
      kernels::add_row_bias(y, b, n / cols, cols);
    };
  }
};

// The gradient of a sum over leading dimensions: the same numbers for each of them.
class RepeatTail : public Op {
 public:
  explicit RepeatTail(Shape whole) : whole_(whole) {}
  std::string_view name() const override { return "repeat_tail"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(whole_)}; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {sum_to_tail(g, d_out[0], g.type(node.in[0]).shape)};
  }
  Kernel compile(const Operands& o) const override {
    return [x = o.in[0].f32(), y = o.out[0].f32(), cols = o.in[0].stored(), n = o.out[0].stored()](const StepContext&) {
      for (std::size_t at = 0; at < n; at += cols) std::copy_n(x, cols, y + at);
    };
  }

 private:
  Shape whole_;
};

class SumToTail : public Op {
 public:
  explicit SumToTail(Shape tail) : tail_(tail) {}
  std::string_view name() const override { return "sum_to_tail"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (!is_tail(in[0].shape, tail_)) bad_input("{} is not the tail of {}", to_string(tail_), to_string(in[0].shape));
    return {f32(tail_)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<RepeatTail>(g.type(node.in[0]).shape), {d_out[0]})};
  }
  Kernel compile(const Operands& o) const override {
    const auto cols = static_cast<std::size_t>(tail_.elements()), n = o.in[0].stored();
    return [x = o.in[0].f32(), y = o.out[0].f32(), cols, n](const StepContext&) {
      kernels::column_sum(x, n / cols, cols, y);
    };
  }

 private:
  Shape tail_;
};

}  // namespace

Value linear(Graph& g, Value x, Value w, Value b) {
  std::vector<Value> in{x, w};
  if (b) in.push_back(b);
  return g.add_one(std::make_shared<Linear>(false), in);
}

Value matmul(Graph& g, Value a, Value b, bool transpose_a, bool transpose_b) {
  return g.add_one(std::make_shared<MatMul>(transpose_a, transpose_b), {a, b});
}

Value add_tail(Graph& g, Value x, Value b) { return g.add_one(std::make_shared<AddTail>(), {x, b}); }

Value sum_to_tail(Graph& g, Value x, Shape tail) { return g.add_one(std::make_shared<SumToTail>(tail), {x}); }

bool is_transposed_product(const Op& op) {
  const auto* m = dynamic_cast<const MatMul*>(&op);
  return m && m->is_transposed_product();
}

std::shared_ptr<const Op> linear_with_relu(const Op& op) {
  const auto* l = dynamic_cast<const Linear*>(&op);
  return l && !l->relu() ? std::make_shared<Linear>(true) : nullptr;
}

}  // namespace echelon::ops
