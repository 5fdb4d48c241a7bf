#pragma once
// Joins what can be computed together: chains of element-wise nodes become one, a ReLU joins the convolution or linear
// layer that feeds it. The result is the same graph with fewer trips through memory.

#include "graph/graph.h"

namespace echelon {

Graph fuse(const Graph& graph);

}  // namespace echelon
