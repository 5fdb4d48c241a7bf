#pragma once
// Pooling of [N, C, H, W].

#include "graph/graph.h"

namespace echelon::ops {

struct Pool {
  int kernel_h = 2, kernel_w = 2;
  int stride_h = 2, stride_w = 2;
  int pad_h = 0, pad_w = 0;
  bool count_padding = true;  // average: whether padding counts as zeros (PyTorch's default)
};

Value max_pool(Graph& g, Value x, const Pool& p);
Value avg_pool(Graph& g, Value x, const Pool& p);
Value global_avg_pool(Graph& g, Value x);  // -> [N, C]

}  // namespace echelon::ops
