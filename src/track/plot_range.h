#pragma once
// What both kinds of plot need to know about their series first.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "track/axis.h"
#include "track/curve.h"

namespace echelon {

struct PlotAxes {
  Axis x, y;
  bool empty = true;  // no point can be shown
};

inline bool is_shown(double x, double y, bool log_y) {
  return std::isfinite(x) && std::isfinite(y) && (!log_y || y > 0);
}

inline PlotAxes axes_of(std::span<const Series> series, bool log_y, int x_ticks, int y_ticks) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  double x0 = inf, x1 = -inf, y0 = inf, y1 = -inf;
  for (const auto& s : series)
    for (std::size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i)
      if (is_shown(s.x[i], s.y[i], log_y)) {
        x0 = std::min(x0, s.x[i]), x1 = std::max(x1, s.x[i]);
        y0 = std::min(y0, s.y[i]), y1 = std::max(y1, s.y[i]);
      }
  PlotAxes axes{make_axis(x0, x1, x_ticks), make_axis(y0, y1, y_ticks, log_y), x0 > x1};
  if (!axes.empty && x0 < x1) {  // the curve fills the width; marks outside of it are left out
    axes.x.low = x0, axes.x.high = x1;
    std::erase_if(axes.x.ticks, [&](const Tick& t) { return t.value < x0 - 1e-9 || t.value > x1 + 1e-9; });
  }
  return axes;
}

}  // namespace echelon
