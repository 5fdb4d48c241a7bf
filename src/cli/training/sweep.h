#pragma once
// `echelon train RECIPE --set optim.lr=0.001,0.01,0.1`: the recipe with each of several values, one run after the
// other, and the runs beside each other at the end. Several such flags make every combination. A list that is one value
// stands in brackets, a text with a comma in quotes.

#include <functional>
#include <string>
#include <vector>

#include "cli/training/train_rank.h"

namespace echelon::cli {

// The values of one --set, as they were written; one if it is no sweep.
std::vector<std::string> values_of_override(const std::string& text);

// Whether some --set has several values.
bool is_sweep(const std::vector<std::string>& overrides);

// Every combination, each as overrides, in the order in which they are trained: the last flag changes fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& overrides);

// Checks all of them first (BadInput with every problem, nothing on disk), then trains them. `world_words`: the flags
// of the world as they were given.
void sweep(const TrainSettings& settings, const std::vector<std::string>& world_words);

}  // namespace echelon::cli
