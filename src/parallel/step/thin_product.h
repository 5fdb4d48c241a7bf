#pragma once
// The gradient of a fully connected layer's weights is a product of two thin matrices: errors^T inputs, with a row of
// each for every sample. Where the batch is small beside the layer, these factors are fewer numbers than the gradient.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/topology.h"
#include "graph/program.h"

namespace echelon {

struct ThinProduct {
  std::string name;  // of the parameter
  Range range;       // of the flat buffers: out x in numbers
  std::size_t out = 0, in = 0;
  std::size_t rows = 1;  // for each sample
};

// The factors of one shard.
struct ShardFactors {
  std::size_t product = 0;    // which one
  std::size_t first_row = 0;  // of this shard, among those of the batch
  std::size_t rows = 0;
  const float* errors = nullptr;  // rows x out; of the sum over the batch, divided as the gradient is
  const float* inputs = nullptr;  // rows x in
};

// Calls f(product, node) for every parameter of the graph whose contribution one node computes as such a product, in
// the order of parameters. `rows` is that of all samples for which the graph was made.
void for_each_thin_product(const Graph& graph, const ParameterTable& table,
                           const std::function<void(const ThinProduct&, std::size_t node)>& f);

}  // namespace echelon
