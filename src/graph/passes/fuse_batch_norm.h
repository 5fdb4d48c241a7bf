#pragma once
// Joins batch norm with the residual sum and the ReLU behind it, forward and backward: in a residual network these are
// most of the trips through memory that are not convolutions. Runs before passes/fuse.h, which would join the ReLU's
// gradient with something else.

#include "graph/graph.h"

namespace echelon {

Graph fuse_batch_norm(const Graph& graph);

}  // namespace echelon
