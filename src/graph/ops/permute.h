#pragma once
// The same numbers in another order.

#include "graph/graph.h"

namespace echelon::ops {

Value transpose(Graph& g, Value x);          // the last two dimensions exchanged: [N, T, d] -> [N, d, T]
Value reverse(Graph& g, Value x, int axis);  // the last element along the axis first
// Dimension i of the result is dimension axes[i] of x: [N, T, h, d] with {0, 2, 1, 3} -> [N, h, T, d].
Value permute(Graph& g, Value x, const std::vector<int>& axes);

}  // namespace echelon::ops
