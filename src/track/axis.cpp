#include "track/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace echelon {

double Axis::position(double value) const {
  if (log) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

namespace {

// 1, 2 or 5 times a power of ten, not below `least`.
double round_step(double least) {
  const double unit = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (unit * factor >= least * (1 - 1e-9)) return unit * factor;
  return unit * 10;
}

// A number as it is written beside a mark when marks are `step` apart: "0.25", "1500", "20k", "3e-05".
std::string label_of(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e12 && step >= 1) {
    const char* const units[] = {"k", "M", "G"};
    const int unit = size >= 1e9 ? 2 : size >= 1e6 ? 1 : 0;
    return fmt::format("{:.6g}{}", value / std::pow(1000.0, unit + 1), units[unit]);
  }
  if (size >= 1e12 || size < 1e-3) return fmt::format("{:.3g}", value);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", value, decimals);
}

void log_ticks(Axis& axis, int wanted) {
  const int first = static_cast<int>(std::floor(std::log10(axis.low))),
            last = static_cast<int>(std::ceil(std::log10(axis.high)));
  const bool room = 3 * std::log10(axis.high / axis.low) <= wanted + 2;  // for marks within the decades
  const std::vector<double> factors = room ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
  const int every = std::max(1, (last - first) / std::max(1, wanted));
  for (int power = first; power <= last; power += every)
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, power);
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9))
        axis.ticks.push_back({value, fmt::format("{:.3g}", value)});
    }
}

}  // namespace

Axis make_axis(double low, double high, int wanted, bool log) {
  Axis axis;
  if (!(low <= high)) low = 0, high = 1;  // also when there is no number at all
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= room, high += room;
  }
  wanted = std::max(2, wanted);
  axis.log = log && low > 0;
  axis.low = low, axis.high = high;
  if (axis.log) {
    log_ticks(axis, wanted);
    if (axis.ticks.size() >= 2) return axis;
    axis.ticks.clear();  // less than a decade: round numbers as on a linear axis, at their logarithmic places
  }
  const double step = round_step((high - low) / wanted);
  if (!axis.log) {
    axis.low = std::floor(low / step + 1e-9) * step;
    axis.high = std::ceil(high / step - 1e-9) * step;
  }
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + step * 1e-6; ++i)
    axis.ticks.push_back({i * step, label_of(i * step, step)});
  return axis;
}

}  // namespace echelon
