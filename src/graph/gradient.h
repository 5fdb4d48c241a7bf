#pragma once
// Gradients by graph transformation: differentiate() adds the backward pass to the same graph, in the same IR, so that
// every later pass (fusion, layouts, memory, cutting into stages) treats forward and backward alike.

#include <functional>

#include "graph/graph.h"

namespace echelon {

// Adds nodes that compute d(loss)/d(p), scaled by StepContext::loss_scale, for every weight p for which `wanted(p)`
// holds, and makes them the weights' contributions. `loss` is a scalar [1]. A weight that the loss does not depend on
// contributes nothing. A gradient node belongs to the layer and slice of the node whose gradient it computes; what
// comes back from several slices to a value that belongs to none is a tree_sum over the slices (ops/slices.h).
void differentiate(Graph& graph, Value loss, const std::function<bool(const Parameter&)>& wanted);
void differentiate(Graph& graph, Value loss);  // every weight

}  // namespace echelon
