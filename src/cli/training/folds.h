#pragma once
// `echelon train RECIPE --folds 5`: k-fold cross-validation. The recipe is trained once for each fold, which is its
// validation part, each time by an `echelon train` of its own; at the end mean and deviation of every metric.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/training/train_rank.h"

namespace echelon::cli {

// How many folds the recipe itself asks for: data.folds where there is no data.fold, else 0.
std::int64_t folds_of(const Recipe& recipe);

// Checks every fold first (BadInput with all problems, nothing on disk), then trains them. `world_words`: the flags of
// the world as they were given.
void train_folds(const TrainSettings& settings, std::int64_t folds, const std::vector<std::string>& world_words);

// Mean and deviation (of a sample: n - 1) of each number that all summaries have: what `best` names and all val_ and
// test_ numbers, in that order.
struct FoldMetric {
  std::string name;
  double mean = 0, deviation = 0;
  std::vector<double> values;  // by fold
};
std::vector<FoldMetric> fold_metrics(const std::vector<Json>& summaries);

}  // namespace echelon::cli
