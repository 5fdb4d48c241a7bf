#pragma once
// The core of multi-head self-attention.

#include "graph/graph.h"

namespace echelon::ops {

// qkv[batch, time, 3 * heads * d] (a linear layer's output) -> [batch, time, heads * d]
Value attention(Graph& g, Value qkv, int heads, bool causal);

}  // namespace echelon::ops
