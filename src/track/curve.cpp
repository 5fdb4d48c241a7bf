#include "track/curve.h"

#include <cmath>

namespace echelon {

Series series_of(const std::vector<MetricPoint>& points, const std::string& metric) {
  Series series{metric, {}, {}};
  for (const auto& point : points)
    if (const double* value = point.find(metric)) {
      series.x.push_back(static_cast<double>(point.step));
      series.y.push_back(*value);
    }
  return series;
}

Series smoothed(const Series& series, double window) {
  Series result{series.name, series.x, {}};
  const double keep = window > 1 ? 1 - 1 / window : 0;
  double sum = 0, weight = 0;
  for (const double y : series.y) {
    if (!std::isfinite(y)) {
      result.y.push_back(y);
      continue;
    }
    sum = keep * sum + y;
    weight = keep * weight + 1;
    result.y.push_back(sum / weight);
  }
  return result;
}

}  // namespace echelon
