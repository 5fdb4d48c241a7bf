#pragma once
// Group normalisation of x[N, C, ...] with one scale and shift for each channel.

#include "graph/graph.h"

namespace echelon::ops {

// gamma and beta: [C]; `groups` divides C.
Value group_norm(Graph& g, Value x, Value gamma, Value beta, int groups, float eps);

}  // namespace echelon::ops
