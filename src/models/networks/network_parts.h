#pragma once
// What the ways to turn a network into a Model have in common (models/network.h).

#include "models/network.h"

namespace echelon::models {

// A field of one sample as a graph's input: the samples go in front.
Value add_input(Graph& graph, const InputSpec::Field& field, std::int64_t samples);

// BadInput unless the scores have that shape. A network written by hand may end with any; the targets decide.
void check_scores(const nn::Net& net, Value scores, const Shape& wanted);

// The loss with what layers want added to it while training.
Value with_extra_losses(nn::Net& net, Value loss);

// Smoothing is for training only; the weights of the classes and the focal factor are always part of the loss.
nn::Classified compare_classes(nn::Net& net, const LossSpec& loss, Value scores, Value target);

// The one phase of an ordinary model: the graph it would evaluate with, in training, and its backward pass.
std::vector<Phase> one_phase(Graph graph, std::int64_t loss_terms);

// The loss of a recipe's [loss]; without one, of the keys that [model] has had for it.
LossSpec with_older_keys(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
