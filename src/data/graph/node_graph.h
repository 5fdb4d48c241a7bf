#pragma once
// A graph whose nodes are to be told apart: who is whose neighbour, and each node's features and class. From files,
//
//   edges.txt   a pair of nodes on each line; nodes count from 0, edges go both ways, '#' begins a comment
//   nodes.txt   a line for each node: its class (-1: not known), then its features; without any, a 1 in its own place
//
// or made up: `communities` with as many nodes each, whose nodes know each other more often than others, and whose
// features say a little about the class.
//
// Immutable once made; thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "world/os/disk.h"

namespace echelon::data {

struct NodeGraph {
  std::int64_t features = 0, classes = 0;
  std::vector<std::uint64_t> first;       // where the neighbours of each node begin, and the end
  std::vector<std::uint32_t> neighbours;  // of each node in ascending order, without itself
  std::vector<float> numbers;             // features, row by row
  std::vector<std::int32_t> labels;       // -1: not known
  std::string fingerprint;

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(labels.size()); }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(neighbours).subspan(first[node], first[node + 1] - first[node]);
  }
  std::uint64_t degree(std::uint32_t node) const { return first[node + 1] - first[node]; }
  std::span<const float> row(std::uint32_t node) const {
    return std::span(numbers).subspan(node * static_cast<std::size_t>(features), static_cast<std::size_t>(features));
  }
};

using NodeGraphPtr = std::shared_ptr<const NodeGraph>;

// BadInput, with file and line, for what is no such graph.
NodeGraphPtr read_node_graph(Disk& disk, const std::string& folder);

struct Communities {
  std::int64_t nodes = 200, classes = 4, features = 16;
  double degree = 6;    // neighbours of a node, on average
  double within = 0.8;  // the share of them that has its class
  double noise = 1;     // of the features, around a centre for each class
  std::uint64_t seed = 1;
};
NodeGraphPtr make_communities(const Communities& options);

// All nodes so that neighbours stand near each other: breadth first, from the first node that is left. Cut into
// stretches it is a partition with few edges between the parts.
std::vector<std::uint32_t> breadth_first(const NodeGraph& graph);

// The nodes that lie within so many steps of some of `own`, those included; ascending.
std::vector<std::uint32_t> within(const NodeGraph& graph, std::span<const std::uint32_t> own, int steps);

}  // namespace echelon::data
