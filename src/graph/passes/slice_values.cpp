#include "graph/passes/slice_values.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/ops/shape.h"
#include "graph/ops/slices.h"
#include "graph/ops/strips.h"

namespace echelon {

namespace {

// "block0.up.weight" and slice 2: "block0.up.slice2.weight".
std::string slice_name(const std::string& name, int slice) {
  const std::size_t dot = name.rfind('.');
  const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
  return fmt::format("{}slice{}.{}", name.substr(0, begin), slice, name.substr(begin));
}

// [.., n, ..] with n of several blocks beside each other as [.., blocks, n / blocks, ..].
Shape with_blocks(const Shape& shape, int axis, int blocks) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[as_index(axis)] /= blocks;
  dims.insert(dims.begin() + axis, blocks);
  return Shape(dims);
}

}  // namespace

SlicedValues::SlicedValues(const Graph& old, int slices, const Cuts& decided, Sliced& result)
    : old_(old), slices_(slices), decided_(decided), places_(as_index(old.values())), result_(result) {}

const Parameter& SlicedValues::parameter(Value old) const {
  return old_.parameters()[as_index(old_.info(old).producer)];
}

bool SlicedValues::is_new_parameter(Value old) {
  const Place& p = place(old);
  return old_.info(old).source == ValueInfo::Source::parameter && !p.whole && p.parts.empty();
}

std::optional<Cut> SlicedValues::decided(Value old) const {
  const auto it = decided_.find(parameter(old).name);
  return it == decided_.end() ? std::nullopt : std::optional(it->second);
}

Cut SlicedValues::cut_of(Value old) { return is_new_parameter(old) ? decided(old).value_or(Cut{}) : place(old).cut; }

Value SlicedValues::whole(Value old) {
  Place& p = place(old);
  if (is_new_parameter(old)) make_parameters(old, decided(old).value_or(Cut{}));
  if (p.whole) return p.whole;
  cut_own_strips(old);
  invariant(p.cut.axis >= 0, "only the op itself reads what it keeps for its gradient");
  std::vector<Value> parts = p.parts;
  if (p.cut.columns > 1) return p.whole = from_grid(parts, p.cut.columns);
  if (p.cut.blocks == 1) return p.whole = ops::concat(g_, parts, p.cut.axis);
  for (Value& part : parts) part = ops::reshape(g_, part, with_blocks(g_.type(part).shape, p.cut.axis, p.cut.blocks));
  return p.whole = ops::reshape(g_, ops::concat(g_, parts, p.cut.axis + 1), old_.type(old).shape);
}

const std::vector<Value>& SlicedValues::parts(Value old, const Cut& cut) {
  Place& p = place(old);
  if (is_new_parameter(old)) make_parameters(old, decided(old).value_or(cut));
  cut_own_strips(old);
  if (!p.parts.empty() && p.cut == cut) return p.parts;
  const Value x = whole(old);
  p.parts.clear();  // cut along another axis until now
  p.cut = cut;
  if (cut.columns > 1) return p.parts = into_grid(x, cut.columns);
  const Shape& shape = old_.type(old).shape;
  std::vector<std::int64_t> extents;
  for (int i = 0; i < slices_; ++i) extents.push_back(part_shape(shape, cut, slices_, i)[cut.axis] / cut.blocks);
  if (cut.blocks == 1) return p.parts = ops::split(g_, x, cut.axis, extents);
  const Value blocks = ops::reshape(g_, x, with_blocks(shape, cut.axis, cut.blocks));
  p.parts = ops::split(g_, blocks, cut.axis + 1, extents);
  for (int i = 0; i < slices_; ++i)
    p.parts[as_index(i)] = ops::reshape(g_, p.parts[as_index(i)], part_shape(shape, cut, slices_, i));
  return p.parts;
}

const std::vector<Value>& SlicedValues::as_made(Value old) {
  cut_own_strips(old);
  return place(old).parts;
}

Value SlicedValues::from_grid(const std::vector<Value>& parts, int columns) {
  std::vector<Value> rows;
  for (auto part = parts.begin(); part != parts.end(); part += columns)
    rows.push_back(ops::concat(g_, std::vector<Value>(part, part + columns), 1));
  return ops::concat(g_, rows, 0);
}

std::vector<Value> SlicedValues::into_grid(Value x, int columns) {
  const auto extents = [&](int axis, int count) {
    return std::vector<std::int64_t>(as_index(count), g_.type(x).shape[axis] / count);
  };
  std::vector<Value> parts;
  for (Value row : ops::split(g_, x, 0, extents(0, slices_ / columns)))
    for (Value part : ops::split(g_, row, 1, extents(1, columns))) parts.push_back(part);
  return parts;
}

void SlicedValues::make_parameters(Value old, const Cut& cut) {
  const Parameter& of = parameter(old);
  Place& p = place(old);
  p.cut = cut;
  result_.cuts[of.name] = cut;
  if (cut.is_whole()) {
    p.whole = g_.parameter(of);
    return;
  }
  for (int i = 0; i < slices_; ++i) {
    Parameter part = of;
    part.name = slice_name(of.name, i);
    part.shape = part_shape(of.shape, cut, slices_, i);
    p.parts.push_back(g_.parameter(part));
    result_.parameters.push_back({part.name, of.name, of.shape, cut, i});
  }
}

std::vector<RowRange> SlicedValues::own_rows(Value old, int axis) const {
  return ops::equal_strips(old_.type(old).shape[axis], slices_);
}

Value SlicedValues::rows_for(Value old, int axis, int slice, const StripOp& strip, RowRange out) {
  const Place& p = place(old);
  const std::int64_t extent = old_.type(old).shape[axis];
  const RowRange wanted = strip.window.sees(out);
  const auto from = [&](const std::vector<Value>& pieces, const std::vector<RowRange>& rows) {
    return ops::rows_of(g_, pieces, rows, axis, slice, wanted, extent, strip.outside);
  };
  if (!p.wide.empty()) return from(p.wide, p.rows);
  if (p.whole) return from({p.whole}, {{0, extent}});
  return from(parts(old, Cut{axis}), own_rows(old, axis));
}

// Each slice's own strip out of those that overlap.
void SlicedValues::cut_own_strips(Value old) {
  Place& p = place(old);
  if (p.wide.empty() || !p.parts.empty()) return;
  const int axis = p.cut.axis;
  const auto own = own_rows(old, axis);
  for (int i = 0; i < slices_; ++i)
    p.parts.push_back(ops::rows_of(g_, p.wide, p.rows, axis, i, own[as_index(i)], old_.type(old).shape[axis], 0));
  g_.set_slice(-1);
}

}  // namespace echelon
