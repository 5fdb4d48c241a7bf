#pragma once
// Several networks of one kind as one model: the keys `members`, `trunk` and `codistil` of a recipe's [model].
//
//   [model]
//   name = "lenet5"
//   members = 4         # networks that start from weights of their own, learn from every sample, and answer together:
//                       # the mean of their probabilities
//   trunk = "conv2"     # the layers up to this one are shared (TreeNets; Lee et al. 2015)
//   codistil = 1.0      # every member also learns what the others answer, with this weight (Anil et al. 2018)
//
// A member is a slice of the model (graph/passes/slice.h): a plan with `tensor` puts members on ranks of their own,
// which then exchange no weights and no gradients but a trunk's; with `codistil`, predictions.

#include "models/model.h"

namespace echelon::models {

struct EnsembleSpec {
  int members = 1;
  std::string trunk = {};
  double codistil = 0;
};

// BadInput if the model has no classes, or no layer of the trunk's name.
std::unique_ptr<Model> ensemble(std::unique_ptr<Model> model, const EnsembleSpec& spec);

// The cross entropy between probabilities that are to be learnt and those of scores, summed over the samples: [1].
Value soft_cross_entropy(Graph& graph, Value probabilities, Value scores);

}  // namespace echelon::models
