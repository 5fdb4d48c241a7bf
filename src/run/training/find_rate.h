#pragma once
// Which learning rate to take (Smith 2017): train for a few steps while the rate rises from very low to very high, and
// look at where the loss is lowest: a tenth of that rate is one that trains without diverging later on. Nothing is
// saved; the weights are thrown away.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "run/training/training.h"

namespace echelon {

struct RateSearch {
  double least = 1e-6, most = 10;  // rates; each step's is the last one's times the same factor
  std::int64_t steps = 100;
};

struct RateTrial {
  std::vector<double> rates, losses;  // of the steps that were done, in order
  bool diverged = false;              // it ended before the highest rate, because the loss had grown
  std::optional<double> suggested;
};

// A tenth of the rate at which the smoothed loss is lowest; none if it has not fallen by a hundredth of what it was
// with the lowest rates.
std::optional<double> suggest_rate(std::span<const double> rates, std::span<const double> losses);

// `progress` (may be empty) is told of each step. One rank only: the team has one.
RateTrial find_rate(const TrainingJob& job, const RateSearch& search, Team& team,
                    const std::function<void(std::int64_t step, double rate, double loss)>& progress = {});

}  // namespace echelon
