#include "graph/ops/recurrent_slices.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/linear.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"
#include "kernels/recurrent/recurrent_cell.h"

namespace echelon::ops {

namespace {

bool has_state(Cell cell) { return cell == Cell::lstm || cell == Cell::gru; }

kernels::CellShape cell_shape(Cell cell, const Type& h) {
  return {.cell = cell, .batch = h.shape[0], .units = h.shape[1]};
}

class Zeros : public Op {
 public:
  explicit Zeros(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "zeros"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(shape_)}; }
  Kernel compile(const Operands& o) const override {
    return [y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) { std::fill_n(y, n, 0.0f); };
  }

 private:
  Shape shape_;
};

// (before, h, c, saved: what the cell has) then (dh, dc: what arrived) -> d_from_x, d_before, d_from_h (gru)
class CellStepGrad : public Op {
 public:
  CellStepGrad(Cell cell, bool dh, bool dc) : cell_(cell), dh_(dh), dc_(dc) {}
  std::string_view name() const override { return "cell_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& h = in[has_state(cell_) ? 1 : 0].shape;
    const Type sums = f32({h[0], kernels::gates(cell_) * h[1]});
    std::vector<Type> out{sums};
    if (has_state(cell_)) out.push_back(f32(h));
    if (cell_ == Cell::gru) out.push_back(sums);
    return out;
  }
  Kernel compile(const Operands& o) const override {
    std::size_t next = 0;
    auto optional = [&](bool there) { return there ? o.in[next++].f32() : nullptr; };
    kernels::CellGrad g{};
    g.before = optional(has_state(cell_));
    const auto s = cell_shape(cell_, o.in[next].type);
    g.h = optional(true);
    g.c = optional(cell_ == Cell::lstm);
    g.saved = optional(has_state(cell_));
    g.dh = optional(dh_), g.dc = optional(dc_);
    g.d_from_x = o.out[0].f32();
    g.d_before = has_state(cell_) ? o.out[1].f32() : nullptr;
    g.d_from_h = cell_ == Cell::gru ? o.out[2].f32() : nullptr;
    return [s, g](const StepContext&) { kernels::cell_backward(s, g); };
  }

 private:
  Cell cell_;
  bool dh_, dc_;
};

// (from_x, from_h [, before]) -> h [, c] [, saved]
class CellStep : public Op, public WithAttributes {
 public:
  explicit CellStep(Cell cell) : cell_(cell) {}
  Attributes attributes() const override { return {{"relu", cell_ == Cell::rnn_relu}}; }
  std::string_view name() const override {
    return cell_ == Cell::lstm ? "lstm_cell" : cell_ == Cell::gru ? "gru_cell" : "rnn_cell";
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Shape& sums = in[0].shape;
    if (sums.rank() != 2 || sums[1] % kernels::gates(cell_) != 0 || !(in[1].shape == sums))
      bad_input("sums {} and {} are not those of a cell", to_string(sums), to_string(in[1].shape));
    const Shape units{sums[0], sums[1] / kernels::gates(cell_)};
    if (has_state(cell_) && !(in[2].shape == units))
      bad_input("state {} should be {}", to_string(in[2].shape), to_string(units));
    std::vector<Type> out{f32(units)};
    if (cell_ == Cell::lstm) out.push_back(f32(units));
    if (has_state(cell_)) out.push_back(f32({units[0], kernels::cell_saved(cell_) * units[1]}));
    return out;
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    const bool lstm = cell_ == Cell::lstm;
    std::vector<Value> in;
    if (has_state(cell_)) in.push_back(node.in[2]);
    in.push_back(node.out[0]);
    if (lstm) in.push_back(node.out[1]);
    if (has_state(cell_)) in.push_back(node.out.back());
    const Value dh = d_out[0], dc = lstm ? d_out[1] : Value{};
    if (dh) in.push_back(dh);
    if (dc) in.push_back(dc);
    const auto d = g.add(std::make_shared<CellStepGrad>(cell_, bool(dh), bool(dc)), in);
    if (!has_state(cell_)) return {d[0], d[0]};
    return {d[0], lstm ? d[0] : d[2], d[1]};
  }
  Kernel compile(const Operands& o) const override {
    const auto s = cell_shape(cell_, o.out[0].type);
    return [s, x = o.in[0].f32(), y = o.in[1].f32(), before = has_state(cell_) ? o.in[2].f32() : nullptr,
            h = o.out[0].f32(), c = cell_ == Cell::lstm ? o.out[1].f32() : nullptr,
            saved = has_state(cell_) ? o.out.back().f32() : nullptr](const StepContext&) {
      kernels::cell_forward(s, x, y, before, h, c, saved);
    };
  }

 private:
  Cell cell_;
};

// What one slice has of the layer while it is unrolled.
struct Part {
  Value w_hh, b_hh;
  std::vector<Value> from_x;  // by step
  Value h, c;
  std::vector<Value> y;  // by step, [batch, 1, units]
};

}  // namespace

std::vector<std::vector<Value>> recurrent_in_slices(Graph& g, Cell cell, const std::vector<std::vector<Value>>& in) {
  const int slices = static_cast<int>(in.size());
  const Shape x = g.type(in[0][0]).shape;
  const std::int64_t batch = x[0], steps = x[1];
  auto for_each_slice = [&](auto&& f) {
    for (int s = 0; s < slices; ++s) {
      g.set_slice(s);
      f(static_cast<std::size_t>(s));
    }
    g.set_slice(-1);
  };

  std::vector<Part> parts(in.size());
  for_each_slice([&](std::size_t s) {
    Part& p = parts[s];
    const std::vector<Value>& v = in[s];
    p.w_hh = v[2], p.b_hh = v[4];
    const std::int64_t wide = g.type(v[1]).shape[0], units = wide / kernels::gates(cell);
    p.from_x = split(g, linear(g, v[0], v[1], v[3]), 1, std::vector<std::int64_t>(static_cast<std::size_t>(steps), 1));
    for (Value& sums : p.from_x) sums = reshape(g, sums, {batch, wide});
    p.h = v.size() > 5 ? v[5] : g.add_one(std::make_shared<Zeros>(Shape{batch, units}), {});
    if (cell == Cell::lstm) p.c = v.size() > 6 ? v[6] : g.add_one(std::make_shared<Zeros>(Shape{batch, units}), {});
  });
  for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
    std::vector<Value> state;
    for (const Part& p : parts) state.push_back(p.h);
    const Value before = concat(g, state, 1);
    for_each_slice([&](std::size_t s) {
      Part& p = parts[s];
      std::vector<Value> sums{p.from_x[t], linear(g, before, p.w_hh, p.b_hh)};
      if (has_state(cell)) sums.push_back(cell == Cell::lstm ? p.c : p.h);
      const auto out = g.add(std::make_shared<CellStep>(cell), sums);
      p.h = out[0];
      if (cell == Cell::lstm) p.c = out[1];
      p.y.push_back(reshape(g, p.h, {batch, 1, g.type(p.h).shape[1]}));
    });
  }
  std::vector<std::vector<Value>> outputs(in.size());
  for_each_slice([&](std::size_t s) {
    outputs[s] = {concat(g, parts[s].y, 1), parts[s].h};
    if (cell == Cell::lstm) outputs[s].push_back(parts[s].c);
  });
  return outputs;
}

}  // namespace echelon::ops
