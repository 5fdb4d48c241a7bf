#pragma once
// Layers that compute with few bits: a pass over a graph before it is differentiated, which puts a quantiser
// (graph/ops/quantise.h, round_errors.h) in front of the weights and of the input of every linear layer and
// convolution. Each weight and each value is quantised once, however many layers read it.
//
// Where an activation is quantised: in front of dropout (which then drops quantised numbers), and for signs in front of
// the ReLU (whose result has no negative ones), looking back through max pooling, reshaping and concatenation.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon {

struct Quantisers {
  using Maker = std::function<Value(Graph&, Value)>;
  Maker weights, activations;         // empty: left as they are
  Maker errors = {};                  // of a layer's output, in training graphs; the same
  bool skip_relu = false;             // activations are signs: what the ReLU would cut off counts
  bool network_input = false;         // whether the network's own input is an activation
  std::set<std::string> exempt = {};  // parameters of layers that are left alone
};

Graph quantise(const Graph& forward, const Quantisers& with);

// The parameters that hold the weights of linear layers and convolutions, in the order in which they are first used.
std::vector<std::string> layer_weights(const Graph& graph);

// The graph as it was before differentiate(): its forward nodes and what they contribute.
Graph without_backward(const Graph& graph);

}  // namespace echelon
