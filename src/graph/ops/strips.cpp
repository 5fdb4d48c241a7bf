#include "graph/ops/strips.h"

#include <algorithm>

#include "graph/attributes.h"
#include "graph/ops/shape.h"

namespace echelon::ops {

namespace {

class Filled : public Op, public WithAttributes {
 public:
  Filled(Shape shape, float value) : shape_(shape), value_(value) {}
  std::string_view name() const override { return "filled"; }
  Attributes attributes() const override { return {{"value", double{value_}}}; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(shape_)}; }
  Kernel compile(const Operands& o) const override {
    return
        [value = value_, y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) { std::fill_n(y, n, value); };
  }

 private:
  Shape shape_;
  float value_;
};

// The rows (or columns) [begin, end) of an image that lies in strips, for `slice`; those outside the image are filled.
Value borrow(Graph& g, const std::vector<Value>& strips, int axis, int slice, std::int64_t begin, std::int64_t end,
             float outside) {
  std::vector<Value> pieces;
  auto fill = [&](std::int64_t rows) {
    Shape shape = g.type(strips[0]).shape;
    shape[axis] = rows;
    g.set_slice(slice);
    pieces.push_back(g.add_one(std::make_shared<Filled>(shape, outside), {}));
  };
  if (begin < 0) fill(std::min<std::int64_t>(0, end) - begin);
  std::int64_t first = 0;  // of the strip
  for (std::size_t s = 0; s < strips.size(); ++s) {
    const std::int64_t rows = g.type(strips[s]).shape[axis];
    const std::int64_t from = std::max(begin, first) - first, to = std::min(end, first + rows) - first;
    first += rows;
    if (from >= to) continue;
    g.set_slice(static_cast<int>(s));
    pieces.push_back(from == 0 && to == rows ? strips[s] : ops::slice(g, strips[s], axis, from, to));
  }
  if (end > first) fill(end - std::max(begin, first));
  g.set_slice(slice);
  return pieces.size() == 1 ? pieces[0] : concat(g, pieces, axis);
}

}  // namespace

std::optional<SliceRule> strips_rule(const SliceQuestion& q, const StripAxis& rows, const StripAxis& columns,
                                     std::size_t outputs, float outside) {
  const int axis = strip_axis(q);
  const StripAxis& along = axis == columns_axis ? columns : rows;
  if (along.out < q.slices || q.in[0].shape[axis] < q.slices) return {};
  SliceRule rule{.in = std::vector<Cut>(q.in.size()), .out = std::vector<Cut>(outputs, {axis})};
  rule.in[0] = {axis};
  rule.build = [along, axis, outside](Graph& g, const std::vector<std::vector<Value>>& in) {
    const StripWindow& w = along.window;
    const int slices = static_cast<int>(in.size());
    std::vector<Value> strips;
    for (const auto& of_slice : in) strips.push_back(of_slice[0]);
    std::vector<std::vector<Value>> out;
    for (int s = 0; s < slices; ++s) {
      const std::int64_t first = part_begin(along.out, slices, s), last = part_begin(along.out, slices, s + 1) - 1;
      std::vector<Value> operands = in[static_cast<std::size_t>(s)];
      operands[0] = borrow(g, strips, axis, s, first * w.stride - w.pad,
                           last * w.stride - w.pad + (w.kernel - 1) * w.dilation + 1, outside);
      out.push_back(g.add(along.op, operands));
    }
    g.set_slice(-1);
    return out;
  };
  return rule;
}

}  // namespace echelon::ops
