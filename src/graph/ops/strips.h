#pragma once
// Images in strips: each slice has some rows of the height (or columns of the width), and borrows from its neighbours
// those that a window at its edge needs (the halo). They are cut out where they are, so that only they travel.

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

// A window that moves along an axis.
struct StripWindow {
  std::int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
};

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

}  // namespace echelon::ops
