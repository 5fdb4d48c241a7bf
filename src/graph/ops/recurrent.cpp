#include "graph/ops/recurrent.h"

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/recurrent_slices.h"
#include "graph/size_limit.h"

namespace echelon::ops {

namespace {

using kernels::RecurrentShape;

// Inputs of both directions: x, w_ih, w_hh, b_ih, b_hh, then h0 (and c0) if the sequence does not start from zero.
enum In { X, W_IH, W_HH, B_IH, B_HH, H0, C0 };

RecurrentShape shape_of(Cell cell, const Type& x, const Type& w_hh) {
  return {.cell = cell, .batch = x.shape[0], .seq = x.shape[1], .in = x.shape[2], .hidden = w_hh.shape[1]};
}
// Sums of products in a sequence: each has as many terms as there are inputs to a gate.
double work_of(const RecurrentShape& s) {
  return static_cast<double>(s.batch * s.seq) * static_cast<double>(kernels::gates(s.cell) * s.hidden);
}
kernels::RecurrentWeights weights_of(const Operands& o) {
  return {o.in[W_IH].f32(), o.in[W_HH].f32(), o.in[B_IH].f32(), o.in[B_HH].f32()};
}

// Which optional operands a gradient node has; they follow the forward's inputs in this order.
struct Given {
  bool state = false, dy = false, dh = false, dc = false;
  bool want_dx = true;  // the first layer's input is data: nobody wants its gradient
};

class RecurrentGrad : public Op {
 public:
  RecurrentGrad(Cell cell, Given given) : cell_(cell), given_(given) {}
  std::string_view name() const override { return "recurrent_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    std::vector<Type> out;
    for (std::size_t i = 0; i < forward_inputs(); ++i) out.push_back(f32(in[i].shape));
    if (!given_.want_dx) out[X] = f32({0});
    return out;
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    const auto s = shape_of(cell_, in[X], in[W_HH]);
    const auto inner = (given_.want_dx ? 2 : 1) * s.in + 2 * s.hidden;
    return 2.0 * work_of(s) * static_cast<double>(inner);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::recurrent_scratch(shape_of(cell_, in[X], in[W_HH]));
  }
  Kernel compile(const Operands& o) const override {
    const auto s = shape_of(cell_, o.in[X].type, o.in[W_HH].type);
    std::size_t next = forward_inputs();
    const float* y = o.in[next++].f32();
    std::byte* saved = o.in[next++].data;  // its only reader: the kernel may use it up
    auto optional = [&](bool there) { return there ? o.in[next++].f32() : nullptr; };
    kernels::RecurrentOutputGrad dout;
    dout.dy = optional(given_.dy), dout.dhn = optional(given_.dh), dout.dcn = optional(given_.dc);
    kernels::RecurrentGrad grad{given_.want_dx ? o.out[X].f32() : nullptr, o.out[W_IH].f32(), o.out[W_HH].f32(),
                                o.out[B_IH].f32(), o.out[B_HH].f32()};
    kernels::RecurrentState start;
    if (given_.state) {
      start.h0 = o.in[H0].f32(), grad.dh0 = o.out[H0].f32();
      if (cell_ == Cell::lstm) start.c0 = o.in[C0].f32(), grad.dc0 = o.out[C0].f32();
    }
    return [s, w = weights_of(o), x = o.in[X].f32(), start, y, saved, dout, grad, scratch = o.scratch](
               const StepContext&) { kernels::recurrent_backward(s, w, x, start, y, saved, dout, grad, scratch); };
  }

 private:
  std::size_t forward_inputs() const { return given_.state ? (cell_ == Cell::lstm ? 7 : 6) : 5; }
  Cell cell_;
  Given given_;
};

class RecurrentOp : public Op, public WithAttributes {
 public:
  explicit RecurrentOp(Cell cell) : cell_(cell) {}
  Attributes attributes() const override { return {{"relu", cell_ == Cell::rnn_relu}}; }
  std::string_view name() const override { return cell_ == Cell::lstm ? "lstm" : cell_ == Cell::gru ? "gru" : "rnn"; }
  // y, h_last, c_last (LSTM), what backward needs.
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape &x = in[X].shape, &w_ih = in[W_IH].shape, &w_hh = in[W_HH].shape;
    if (x.rank() != 3) bad_input("needs sequences [batch, time, features], not {}", to_string(x));
    const std::int64_t hidden = w_hh.rank() == 2 ? w_hh[1] : 0, rows = kernels::gates(cell_) * hidden;
    if (!(w_ih == Shape{rows, x[2]}) || !(w_hh == Shape{rows, hidden}))
      bad_input("input {} does not fit weights {} and {}", to_string(x), to_string(w_ih), to_string(w_hh));
    for (std::size_t i = H0; i < in.size(); ++i)
      if (!(in[i].shape == Shape{x[0], hidden}))
        bad_input("initial state {} should be {}", to_string(in[i].shape), to_string(Shape{x[0], hidden}));
    std::vector<Type> out{f32({x[0], x[1], hidden}), f32({x[0], hidden})};
    if (cell_ == Cell::lstm) out.push_back(out[1]);
    check_size(f32({x[0], x[1], 8 * hidden + 64}));  // more than what is saved, so that its size can be computed
    const std::size_t saved = kernels::recurrent_saved(shape_of(cell_, in[X], in[W_HH]));
    out.push_back(f32({static_cast<std::int64_t>((saved + sizeof(float) - 1) / sizeof(float))}));
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>& wanted) const override {
    const bool lstm = cell_ == Cell::lstm;
    std::vector<Value> in = node.in;
    in.push_back(node.out[0]);
    in.push_back(node.out.back());
    Given given{.state = node.in.size() > H0, .want_dx = wanted[X]};
    auto optional = [&](Value v, bool& flag) {
      flag = static_cast<bool>(v);
      if (v) in.push_back(v);
    };
    optional(d_out[0], given.dy);
    optional(d_out[1], given.dh);
    optional(lstm ? d_out[2] : Value{}, given.dc);
    return g.add(std::make_shared<RecurrentGrad>(cell_, given), in);
  }
  // By units: every slice has its units of each gate.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const int gates = static_cast<int>(kernels::gates(cell_));
    SliceRule rule{.in = std::vector<Cut>(q.in.size(), {1}), .out = {{2}, {1}}};
    rule.in[X] = {};
    for (const In weights : {W_IH, W_HH, B_IH, B_HH}) rule.in[weights] = {0, gates};
    if (cell_ == Cell::lstm) rule.out.push_back({1});
    rule.units = q.in[W_HH].shape[1], rule.unit = "units";
    rule.build = [cell = cell_](Graph& g, const std::vector<std::vector<Value>>& in) {
      return recurrent_in_slices(g, cell, in);
    };
    return rule;
  }
  double flops(std::span<const Type> in, std::span<const Type>) const override {
    const auto s = shape_of(cell_, in[X], in[W_HH]);
    return 2.0 * work_of(s) * static_cast<double>(s.in + s.hidden);
  }
  std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type>) const override {
    return kernels::recurrent_scratch(shape_of(cell_, in[X], in[W_HH]));
  }
  Kernel compile(const Operands& o) const override {
    const bool lstm = cell_ == Cell::lstm;
    const auto s = shape_of(cell_, o.in[X].type, o.in[W_HH].type);
    kernels::RecurrentState start;
    if (o.in.size() > H0) start.h0 = o.in[H0].f32();
    if (o.in.size() > C0) start.c0 = o.in[C0].f32();
    const kernels::RecurrentOutput out{o.out[0].f32(), o.out[1].f32(), lstm ? o.out[2].f32() : nullptr};
    return [s, w = weights_of(o), x = o.in[X].f32(), start, out, saved = o.out.back().data, scratch = o.scratch](
               const StepContext&) { kernels::recurrent_forward(s, w, x, start, out, saved, scratch); };
  }

 private:
  Cell cell_;
};

}  // namespace

Recurrent recurrent(Graph& g, Cell cell, Value x, const RecurrentWeights& w, Value h0, Value c0) {
  std::vector<Value> in{x, w.w_ih, w.w_hh, w.b_ih, w.b_hh};
  if (h0) in.push_back(h0);
  if (h0 && cell == Cell::lstm) {
    invariant(bool(c0), "an LSTM that starts from a state needs both h0 and c0");
    in.push_back(c0);
  }
  const auto out = g.add(std::make_shared<RecurrentOp>(cell), in);
  return {out[0], out[1], cell == Cell::lstm ? out[2] : Value{}};
}

}  // namespace echelon::ops
