#pragma once
// Images in strips: each slice has some rows of the height (or columns of the width), and borrows from its neighbours
// those that a window at its edge needs (the halo). They are cut out where they are, so that only they travel. Strips
// may also overlap: then a slice computes the rows of its halo once more itself (Slicing::overlap, passes/slice.h).

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

// An op on strips along one axis: the output's extent, and the op without padding there.
struct StripAxis {
  std::int64_t out = 0;
  StripWindow window;
  std::shared_ptr<const Op> op;
};

inline constexpr int rows_axis = 2, columns_axis = 3;
// Along which axis an op is cut whose first input arrives so: columns where it is in columns already, else rows.
inline int strip_axis(const SliceQuestion& q) { return q.arrives[0] == Cut{columns_axis} ? columns_axis : rows_axis; }

// The rule of an op whose first input [N, C, H, W] is cut into strips. The other inputs stay whole, all `outputs` are
// images; what lies outside the image has the value `outside`. No rule if the output is shorter than there are slices.
std::optional<SliceRule> strips_rule(const SliceQuestion& q, const StripAxis& rows, const StripAxis& columns,
                                     std::size_t outputs, float outside);

// These rows (or columns) of an image, for `slice`: strip i has the rows `have[i]`, or `strips` is one image that
// everybody has. What neighbours have is cut out there; what lies outside of the image, which has `extent` rows, is
// filled. A strip that has all rows that are asked for is enough by itself.
Value rows_of(Graph& g, const std::vector<Value>& strips, const std::vector<RowRange>& have, int axis, int slice,
              RowRange wanted, std::int64_t extent, float outside);

// A value that is the same number everywhere.
Value filled(Graph& g, const Shape& shape, float value);

// The rows of each strip if an extent is cut into equal ones.
std::vector<RowRange> equal_strips(std::int64_t extent, int slices);

}  // namespace echelon::ops
