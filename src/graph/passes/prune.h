#pragma once
// Drops the nodes whose results nobody reads.

#include "graph/graph.h"

namespace echelon {

Graph prune(const Graph& graph);

}  // namespace echelon
