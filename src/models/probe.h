#pragma once
// The answers of a network that has not been trained, for checks of what depends on what.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon::models {

// What the graph's output `output` is for the input that `fill` writes, with weights, biases and statistics that are
// not zero: the same ones for every graph with the same parameters.
std::vector<float> probe(const Graph& graph, const std::string& input, const std::string& output,
                         const std::function<void(std::span<std::byte>)>& fill);

}  // namespace echelon::models
