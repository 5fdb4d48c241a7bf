#pragma once
// A model of which only a part is trained, or parts at rates of their own: what training that begins with somebody
// else's weights wants. Names of weights are matched by patterns (base/glob.h).

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "models/model.h"

namespace echelon::models {

// Every weight and running statistic of the model, by name, in the order of the graph.
std::vector<std::string> parameter_names(const Model& model);

// Reads `freeze`, a list of patterns. A pattern that fits nothing, and patterns that leave nothing to train, are
// problems of the reader. The weights that fit get no gradient: the backward pass ends where no weight before it is
// trained. Statistics that fit keep their values.
std::unique_ptr<Model> read_frozen(std::unique_ptr<Model> model, OptionReader& options);

// What `freeze` leaves at rest, for people: how many tensors and parameters, and every pattern that fits little.
std::vector<std::string> frozen_in_words(const std::vector<std::string>& patterns, const Model& model);

// The rate of each weight that a pattern fits is the run's times a factor; of several patterns the longest counts.
using Rates = std::vector<std::pair<std::string, double>>;
std::unique_ptr<Model> with_rates(std::unique_ptr<Model> model, Rates rates);

// Adds a problem at `key` for every pattern that fits none of the model's weights, with the nearest name that there is.
void check_patterns(const std::vector<std::string>& patterns, const Model& model, const std::string& key,
                    OptionReader& options);

}  // namespace echelon::models
