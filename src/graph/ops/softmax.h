#pragma once
// Softmax over the last dimension.

#include "graph/graph.h"

namespace echelon::ops {

Value softmax(Graph& g, Value x);

}  // namespace echelon::ops
