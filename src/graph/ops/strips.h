#pragma once
// Images in strips: each slice has some rows of the height, and borrows from its neighbours the rows that a window at
// its edge needs (the halo). Borrowed rows are cut out where they are, so that only they travel.

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

// A window that moves over rows.
struct RowWindow {
  std::int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
};

// The rule of an op whose first input [N, C, H, W] is cut into strips of rows, and whose output has `out_rows` rows.
// The other inputs stay whole, all `outputs` are images. `op` works without padding on the height; rows outside the
// image have the value `outside`. No rule if there are fewer output rows than slices.
std::optional<SliceRule> strips_rule(const SliceQuestion& q, std::int64_t out_rows, const RowWindow& window,
                                     std::size_t outputs, std::shared_ptr<const Op> op, float outside);

}  // namespace echelon::ops
