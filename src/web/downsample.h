#pragma once
// A curve with few points that looks like one with many: the range is cut into equal pieces, and of each piece its
// lowest and its highest point are kept, so that no spike disappears. A piece of the curve that has few points is kept
// exactly: who zooms in sees every point. A pure function.

#include <cstddef>
#include <span>
#include <vector>

namespace echelon::web {

struct Curve {
  std::vector<double> x, y;
  std::size_t points = 0;  // that lie in the range, of which these are some or all
};

// Those with from <= x <= to, at most about `most` (at least 4) of them. `x` does not descend. Points that are not
// finite are left out.
Curve downsample(std::span<const double> x, std::span<const double> y, double from, double to, std::size_t most);

}  // namespace echelon::web
