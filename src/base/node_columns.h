#pragma once
// What follows the features in a row of a graph's sample (data/graph/neighbourhoods.h writes it,
// models/networks/graph_network.h reads it).

namespace echelon {

enum NodeColumn {
  edge_column,    // 1 / sqrt((d + 1) (d of its parent + 1)), for d neighbours; more where some were left out (GCN)
  mean_column,    // 1 / how many neighbours of its parent are there
  self_column,    // 1 / (d + 1)
  absent_column,  // 0; of a row without a node -1e9, and the rest of it is 0
  node_columns
};

}  // namespace echelon
