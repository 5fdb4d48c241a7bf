#pragma once
// Networks that tell the nodes of a graph apart by their features and their neighbours' (data.kind = "graph"), a layer
// for each level of neighbours that a sample has.

#include "base/options.h"
#include "models/network.h"

namespace echelon::models {

// gcn (Kipf and Welling 2017): each layer takes the sum over a node and its neighbours, each by
// 1 / sqrt((d + 1) (d' + 1)). Reads `hidden`, `dropout`.
std::unique_ptr<Model> make_gcn(OptionReader& options, const InputSpec& inputs);
// sage (Hamilton et al. 2017): the node itself, and the mean of its neighbours, each with weights of its own.
std::unique_ptr<Model> make_sage(OptionReader& options, const InputSpec& inputs);
// gat (Velickovic et al. 2018): the neighbours count as much as attention says. Reads also `heads`.
std::unique_ptr<Model> make_gat(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
