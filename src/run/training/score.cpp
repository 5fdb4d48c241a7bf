#include "run/training/score.h"

#include <cmath>
#include <limits>

namespace echelon {

std::pair<std::string, double> monitored(const std::optional<Metric>& monitor, const Evaluation& e) {
  if (!monitor) return e.accuracy >= 0 ? std::pair("accuracy", e.accuracy) : std::pair("loss", e.loss);
  for (const auto& [name, value] : e.metrics)
    if (name == monitor->name) return {name, value};
  return {"loss", e.loss};
}

bool higher_is_better(const std::optional<Metric>& monitor, const Evaluation& e) {
  return monitor ? monitor->higher_is_better() : e.accuracy >= 0;
}

Score score_of(const std::optional<Metric>& monitor, const Evaluation& e) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double value = monitored(monitor, e).second;
  return {.value = std::isnan(value)              ? -infinity
                   : higher_is_better(monitor, e) ? value
                                                  : -value,
          .loss = std::isnan(e.loss) ? infinity : e.loss};
}

}  // namespace echelon
