#pragma once
// What else is done around each node of a training graph when somebody watches the computation: which gradients are
// complete after it, which parameters it reads, what the rank's status says meanwhile.

#include <string>
#include <vector>

#include "collective/topology.h"
#include "graph/program.h"
#include "parallel/step/buckets.h"

namespace echelon {

struct NodeActions {
  std::string status;  // "backward of conv2"
  double flops = 0;
  std::vector<std::size_t> completes;  // buckets whose last gradient it computes
  int product = -1;                    // the thin product that it computes (parallel/step/thin_product.h); -1: none
  std::vector<Range> reads = {};       // parameters; in forward only
};

// For each node of the graph. `buckets` may be empty.
std::vector<NodeActions> node_actions(const Graph& graph, const ParameterTable& table,
                                      const std::vector<Bucket>& buckets);

// When each parameter's gradient is complete, if the graph runs at that many floating-point operations a second and
// begins `start` seconds after the step.
std::vector<ReadyPiece> ready_pieces(const Graph& graph, const ParameterTable& table, double speed, double start);

// A node of the forward pass: what it reads, and whose values it needs.
struct ForwardNode {
  double seconds = 0;
  std::vector<Range> reads = {};        // parameters
  std::vector<std::size_t> after = {};  // nodes, in this list
};
// All of them, in the graph's order, without their times. `nodes`: which node of the graph each is.
std::vector<ForwardNode> forward_nodes(const Graph& graph, const ParameterTable& table,
                                       std::vector<std::size_t>& nodes);

// Parameters in the order in which forward reads them first.
std::vector<Range> reading_order(const Graph& graph, const ParameterTable& table);

}  // namespace echelon
