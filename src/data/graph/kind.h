#pragma once
// kind = "graph": nodes of a graph, from files or made up (data/graph/node_graph.h), as samples with their neighbours.
#include "data/kinds.h"

namespace echelon::data {

OpenSplit read_graph_kind(OptionReader& table, const DataPath& fallback);

}  // namespace echelon::data
