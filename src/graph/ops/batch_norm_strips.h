#pragma once
// Batch norm over images in strips, exact: the statistics are those of all strips, added up in the fixed tree.

#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

// in[slice]: x [N, C, rows, W], gamma and beta (whole). Returns, for each slice, y and then what all share: no value
// twice (mean and deviation), and the contributions to the running mean and variance.
std::vector<std::vector<Value>> batch_norm_in_strips(Graph& g, const std::vector<std::vector<Value>>& in, float eps);

}  // namespace echelon::ops
