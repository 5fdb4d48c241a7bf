#include "graph/ops/elementwise.h"

#include <cstring>

#include "base/error.h"
#include "kernels/vector.h"

namespace echelon::ops {

namespace {

using kernels::Ew;
using kernels::EwStep;

class Elementwise : public Op {
 public:
  explicit Elementwise(std::vector<EwStep> program) : program_(std::move(program)) {}

  const std::vector<EwStep>& program() const { return program_; }
  std::string_view name() const override {
    return program_.size() == 1 ? kernels::name_of(program_[0].op) : "elementwise";
  }
  std::string detail() const override {
    if (program_.size() == 1) return {};
    std::string text;
    for (const EwStep& s : program_) text += fmt::format("{}{}", text.empty() ? "" : " ", kernels::name_of(s.op));
    return text;
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    for (const Type& t : in) {
      if (t.dtype != DType::f32) bad_input("needs numbers (f32), not {}", to_string(t));
      if (!(t.shape == in[0].shape))
        bad_input("operands must have one shape, but they are {} and {}", to_string(in[0].shape), to_string(t.shape));
    }
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override;
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int) const override { return preferred_victim_; }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override { return row_by_row(follow_cut(q)); }
  bool works_by_rows() const override { return true; }
  double flops(std::span<const Type>, std::span<const Type>) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    std::vector<const float*> in;
    for (const Operand& operand : o.in) in.push_back(operand.f32());
    return [program = program_, in, out = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      kernels::elementwise(program, in, out, n);
    };
  }

 private:
  std::vector<EwStep> program_;
  // Gradients read (y or x, dy): dy is the one that dies. Everything else may take its first operand's place.
  int preferred_victim_ = program_.size() == 1 && program_[0].op >= Ew::relu_grad ? 1 : 0;
};

Value unary(Graph& g, Ew op, Value x, float c = 0) { return g.add_one(elementwise_op({{op, 0, -1, c}}), {x}); }
Value binary(Graph& g, Ew op, Value a, Value b, float c = 0) {
  return g.add_one(elementwise_op({{op, 0, 1, c}}), {a, b});
}

std::vector<Value> Elementwise::gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                                         const std::vector<bool>& wanted) const {
  invariant(program_.size() == 1, "gradients are taken before fusion");
  const EwStep& s = program_[0];
  const Value dy = d_out[0], y = node.out[0], a = node.in[0], b = node.in.size() > 1 ? node.in[1] : Value{};
  const bool want_a = wanted[0], want_b = wanted.size() > 1 && wanted[1];
  auto when = [](bool want, auto make) { return want ? make() : Value{}; };
  switch (s.op) {
    case Ew::add: return {dy, dy};
    case Ew::sub: return {dy, when(want_b, [&] { return unary(g, Ew::neg, dy); })};
    case Ew::mul: return {when(want_a, [&] { return mul(g, dy, b); }), when(want_b, [&] { return mul(g, dy, a); })};
    case Ew::div:
      return {when(want_a, [&] { return div(g, dy, b); }),
              when(want_b, [&] { return unary(g, Ew::neg, div(g, mul(g, dy, y), b)); })};
    case Ew::max:
    case Ew::min: {
      const Value a_wins = s.op == Ew::max ? binary(g, Ew::greater, a, b) : binary(g, Ew::greater, b, a);
      return {when(want_a, [&] { return mul(g, dy, a_wins); }),
              when(want_b, [&] { return sub(g, dy, mul(g, dy, a_wins)); })};
    }
    case Ew::neg: return {unary(g, Ew::neg, dy)};
    case Ew::abs: return {mul(g, dy, unary(g, Ew::sign, a))};
    case Ew::square: return {scale(g, mul(g, dy, a), 2)};
    case Ew::sqrt: return {scale(g, div(g, dy, y), 0.5f)};
    case Ew::exp: return {mul(g, dy, y)};
    case Ew::log: return {div(g, dy, a)};
    case Ew::scale: return {scale(g, dy, s.c)};
    case Ew::offset: return {dy};
    case Ew::relu: return {binary(g, Ew::relu_grad, y, dy)};
    case Ew::leaky_relu: return {binary(g, Ew::leaky_relu_grad, y, dy, s.c)};
    case Ew::gelu: return {binary(g, Ew::gelu_grad, a, dy)};
    case Ew::sigmoid: return {binary(g, Ew::sigmoid_grad, y, dy)};
    case Ew::tanh: return {binary(g, Ew::tanh_grad, y, dy)};
    case Ew::softplus: return {binary(g, Ew::softplus_grad, y, dy)};
    case Ew::elu: return {binary(g, Ew::elu_grad, y, dy, s.c)};
    default: return Op::gradient(g, node, d_out, wanted);
  }
}

class ScaleBy : public Op {
 public:
  std::string_view name() const override { return "scale_by"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[1].elements() != 1) bad_input("the factor must be one number, not {}", to_string(in[1].shape));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {scale_by(g, d_out[0], node.in[1]), Value{}};
  }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    if (q.arrives[0].axis < 0) return {};
    return SliceRule{.in = {q.arrives[0], {}}, .out = {q.arrives[0]}};
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    return [x = o.in[0].f32(), s = o.in[1].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      kernels::scale(y, x, *s, n);
    };
  }
};

class Copy : public Op {
 public:
  std::string_view name() const override { return "copy"; }
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override { return row_by_row(follow_cut(q)); }
  std::vector<Type> infer(std::span<const Type> in) const override { return {Type{in[0].dtype, in[0].shape}}; }
  std::vector<Value> gradient(Graph&, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {d_out[0]};
  }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  Kernel compile(const Operands& o) const override {
    return [from = o.in[0].data, to = o.out[0].data, bytes = o.out[0].type.bytes()](const StepContext&) {
      std::memcpy(to, from, bytes);
    };
  }
};

}  // namespace

std::shared_ptr<const Op> elementwise_op(std::vector<EwStep> program) {
  return std::make_shared<Elementwise>(std::move(program));
}

const std::vector<EwStep>* elementwise_program(const Op& op) {
  const auto* e = dynamic_cast<const Elementwise*>(&op);
  return e ? &e->program() : nullptr;
}

Value add(Graph& g, Value a, Value b) { return binary(g, Ew::add, a, b); }
Value sub(Graph& g, Value a, Value b) { return binary(g, Ew::sub, a, b); }
Value mul(Graph& g, Value a, Value b) { return binary(g, Ew::mul, a, b); }
Value div(Graph& g, Value a, Value b) { return binary(g, Ew::div, a, b); }
Value scale(Graph& g, Value x, float factor) { return unary(g, Ew::scale, x, factor); }
Value offset(Graph& g, Value x, float summand) { return unary(g, Ew::offset, x, summand); }
Value square(Graph& g, Value x) { return unary(g, Ew::square, x); }
Value sqrt(Graph& g, Value x) { return unary(g, Ew::sqrt, x); }
Value exp(Graph& g, Value x) { return unary(g, Ew::exp, x); }
Value log(Graph& g, Value x) { return unary(g, Ew::log, x); }
Value abs(Graph& g, Value x) { return unary(g, Ew::abs, x); }
Value relu(Graph& g, Value x) { return unary(g, Ew::relu, x); }
Value leaky_relu(Graph& g, Value x, float slope) { return unary(g, Ew::leaky_relu, x, slope); }
Value gelu(Graph& g, Value x) { return unary(g, Ew::gelu, x); }
Value sigmoid(Graph& g, Value x) { return unary(g, Ew::sigmoid, x); }
Value tanh(Graph& g, Value x) { return unary(g, Ew::tanh, x); }
Value softplus(Graph& g, Value x) { return unary(g, Ew::softplus, x); }
Value elu(Graph& g, Value x, float alpha) { return unary(g, Ew::elu, x, alpha); }
Value scale_by(Graph& g, Value x, Value s) { return g.add_one(std::make_shared<ScaleBy>(), {x, s}); }
Value copy(Graph& g, Value x) { return g.add_one(std::make_shared<Copy>(), {x}); }

}  // namespace echelon::ops
