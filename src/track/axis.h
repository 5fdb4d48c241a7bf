#pragma once
// The scale of a plot: a range, where its marks are and what is written beside them. Pure functions.

#include <string>
#include <vector>

namespace echelon {

struct Tick {
  double value;
  std::string label;
};

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  std::vector<Tick> ticks;

  double position(double value) const;  // 0 at low, 1 at high
};

// An axis that shows all of [low, high] with about `wanted` marks at round numbers. A logarithmic one needs low > 0,
// and is made linear otherwise.
Axis make_axis(double low, double high, int wanted, bool log = false);

}  // namespace echelon
