#pragma once
// The nodes of a graph as samples: a node with a tree of its neighbours, theirs, and so on, as many levels as a network
// has layers, so that a node's sample is all that its answer depends on. Of a node with more neighbours than there is
// room for, some are drawn anew in every epoch (GraphSAGE); with room for all, sums over the tree are the sums over the
// graph.
//
// The inputs of a sample, one a level: "nodes" f32[c], "neighbours1" f32[k1, c], "neighbours2" f32[k1, k2, c], ...; and
// its "label". A row has the node's features, and then what networks need to know of its place
// (base/node_columns.h).

#include "base/node_columns.h"
#include "data/dataset.h"
#include "data/graph/node_graph.h"

namespace echelon::data {

// Where a node's features lie: all in one place, or those that one worker holds (data/graph/halo.h).
class NodeFeatures {
 public:
  virtual ~NodeFeatures() = default;
  virtual std::span<const float> row(std::uint32_t node) const = 0;
};

// What a data set says of the graph that it is made of.
struct Neighbourhood {
  NodeGraphPtr graph;
  std::vector<std::int64_t> sizes;   // of the levels behind the first: neighbours of each node
  std::vector<std::uint32_t> nodes;  // of each sample
  // The sample of a node.
  void fill(std::uint32_t node, const SampleContext& context, const NodeFeatures& features, SampleRef out) const;
};

std::shared_ptr<const Dataset> make_neighbourhoods(NodeGraphPtr graph, std::vector<std::int64_t> sizes);

}  // namespace echelon::data
