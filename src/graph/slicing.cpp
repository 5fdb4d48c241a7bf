#include "graph/slicing.h"

#include <algorithm>

#include "graph/op.h"

namespace echelon {

Shape part_shape(Shape whole, const Cut& cut, int slices, int slice) {
  if (cut.columns > 1) {
    whole[0] /= slices / cut.columns, whole[1] /= cut.columns;
    return whole;
  }
  const std::int64_t block = whole[cut.axis] / cut.blocks;
  whole[cut.axis] = cut.blocks * (part_begin(block, slices, slice + 1) - part_begin(block, slices, slice));
  return whole;
}

std::optional<SliceRule> follow_cut(const SliceQuestion& q, std::size_t outputs) {
  const auto cut = std::ranges::find_if(q.arrives, [](const Cut& c) { return c.axis >= 0; });
  if (cut == q.arrives.end()) return {};
  return SliceRule{.in = std::vector<Cut>(q.in.size(), *cut), .out = std::vector<Cut>(outputs, *cut)};
}

std::optional<SliceRule> follow_cut_except(const SliceQuestion& q, int axis, std::size_t outputs) {
  auto rule = follow_cut(q, outputs);
  if (rule && rule->in[0].axis == axis) return {};
  return rule;
}

std::optional<SliceRule> row_by_row(std::optional<SliceRule> rule) {
  if (rule) rule->strip = StripOp{};
  return rule;
}

}  // namespace echelon
