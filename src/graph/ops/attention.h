#pragma once
// The core of multi-head attention.

#include "graph/graph.h"

namespace echelon::ops {

// qkv[batch, time, 3 * heads * d] (a linear layer's output) -> [batch, time, heads * d]
Value attention(Graph& g, Value qkv, int heads, bool causal);

// Queries of one sequence, keys and values of another: q[batch, time, heads * d], kv[batch, other, 2 * heads * d] ->
// [batch, time, heads * d].
Value cross_attention(Graph& g, Value q, Value kv, int heads);

// Self-attention of one more position, for writing text token by token. `cache`[batch, room, 2 * width] holds the keys
// and values of the positions before, `position` i32[1] says how many they are (less than `room`). Returns the attended
// [batch, 1, width] and the cache with this position's keys and values in it. Has no gradient.
struct Attended {
  Value y, cache;
};
Attended cached_attention(Graph& g, Value qkv, Value cache, Value position, int heads);

}  // namespace echelon::ops
