#pragma once
// Where a network is to learn nothing from what follows: defined beside the other views, in shape.cpp.

#include "graph/graph.h"

namespace echelon::ops {

Value stop_gradient(Graph& g, Value x);  // x itself, as if it were a constant

}  // namespace echelon::ops
