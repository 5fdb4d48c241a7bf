#pragma once
// Which of two evaluations is the better one. `monitor` is the metric that decides; none: accuracy, or the loss if
// there is none.

#include <optional>
#include <string>
#include <utility>

#include "parallel/metrics/metric.h"
#include "run/events.h"

namespace echelon {

// How good an evaluation was: by the monitored metric, and among equals by the loss.
struct Score {
  double value = 0;  // higher is better
  double loss = 0;
  bool better_than(const Score& other) const {
    return value > other.value || (value == other.value && loss < other.loss);
  }
};

// The monitored metric of an evaluation: its name and value.
std::pair<std::string, double> monitored(const std::optional<Metric>& monitor, const Evaluation& e);
bool higher_is_better(const std::optional<Metric>& monitor, const Evaluation& e);
Score score_of(const std::optional<Metric>& monitor, const Evaluation& e);  // what is no number is worse than anything

}  // namespace echelon
