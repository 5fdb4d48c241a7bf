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

}  // namespace

Value filled(Graph& g, const Shape& shape, float value) {
  return g.add_one(std::make_shared<Filled>(shape, value), {});
}

std::vector<RowRange> equal_strips(std::int64_t extent, int slices) {
  std::vector<RowRange> rows;
  for (int s = 0; s < slices; ++s) rows.push_back({part_begin(extent, slices, s), part_begin(extent, slices, s + 1)});
  return rows;
}

Value rows_of(Graph& g, const std::vector<Value>& strips, const std::vector<RowRange>& have, int axis, int slice,
              RowRange wanted, std::int64_t extent, float outside) {
  const RowRange inside{std::max<std::int64_t>(wanted.begin, 0), std::min(wanted.end, extent)};
  std::vector<Value> pieces;
  auto fill = [&](std::int64_t rows) {
    if (rows <= 0) return;
    Shape shape = g.type(strips[0]).shape;
    shape[axis] = rows;
    g.set_slice(slice);
    pieces.push_back(filled(g, shape, outside));
  };
  auto take = [&](std::size_t strip, RowRange rows, int where) {
    const RowRange& of = have[strip];
    const std::int64_t from = std::max(rows.begin, of.begin), to = std::min(rows.end, of.end);
    if (from >= to) return;
    g.set_slice(where);
    const bool all = from == of.begin && to == of.end;
    pieces.push_back(all ? strips[strip] : ops::slice(g, strips[strip], axis, from - of.begin, to - of.begin));
  };
  fill(std::min<std::int64_t>(0, wanted.end) - wanted.begin);
  const std::size_t own = strips.size() == 1 ? 0 : static_cast<std::size_t>(slice);
  if (have[own].begin <= inside.begin && inside.end <= have[own].end)
    take(own, inside, slice);
  else
    for (std::size_t s = 0; s < strips.size(); ++s) take(s, inside, static_cast<int>(s));
  fill(wanted.end - std::max(wanted.begin, extent));
  g.set_slice(slice);
  return pieces.size() == 1 ? pieces[0] : concat(g, pieces, axis);
}

std::optional<SliceRule> strips_rule(const SliceQuestion& q, const StripAxis& rows, const StripAxis& columns,
                                     std::size_t outputs, float outside) {
  const int axis = strip_axis(q);
  const StripAxis& along = axis == columns_axis ? columns : rows;
  if (along.out < q.slices || q.in[0].shape[axis] < q.slices) return {};
  SliceRule rule{.in = std::vector<Cut>(q.in.size()), .out = std::vector<Cut>(outputs, {axis})};
  rule.in[0] = {axis};
  rule.strip = StripOp{along.window, along.op, outside};
  rule.build = [along, axis, outside](Graph& g, const std::vector<std::vector<Value>>& in) {
    const int slices = static_cast<int>(in.size());
    std::vector<Value> strips;
    std::int64_t extent = 0;
    for (const auto& of_slice : in) strips.push_back(of_slice[0]), extent += g.type(of_slice[0]).shape[axis];
    const auto have = equal_strips(extent, slices), wanted = equal_strips(along.out, slices);
    std::vector<std::vector<Value>> out;
    for (int s = 0; s < slices; ++s) {
      const auto i = static_cast<std::size_t>(s);
      std::vector<Value> operands = in[i];
      operands[0] = rows_of(g, strips, have, axis, s, along.window.sees(wanted[i]), extent, outside);
      out.push_back(g.add(along.op, operands));
    }
    g.set_slice(-1);
    return out;
  };
  return rule;
}

}  // namespace echelon::ops
