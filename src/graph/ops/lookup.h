#pragma once
// Embedding tables.

#include "graph/graph.h"

namespace echelon::ops {

// ids[..] (i32, each in [0, table's rows)) -> [.., d]
Value embedding(Graph& g, Value table, Value ids);

}  // namespace echelon::ops
