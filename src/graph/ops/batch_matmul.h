#pragma once
// Products of many small matrices at once: what attention is made of when it is written out.

#include "graph/graph.h"

namespace echelon::ops {

// op(a)[.., m, k] times op(b)[.., k, n]; the dimensions before the last two are the same in both.
Value batch_matmul(Graph& g, Value a, Value b, bool transpose_a = false, bool transpose_b = false);

// Scores [.., queries, keys]: a query does not see the keys that come after it. Their scores become so low (-1e30) that
// softmax gives them nothing.
Value causal_mask(Graph& g, Value scores);

}  // namespace echelon::ops
