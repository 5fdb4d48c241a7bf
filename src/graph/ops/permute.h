#pragma once
// The same numbers in another order.

#include "graph/graph.h"

namespace echelon::ops {

Value transpose(Graph& g, Value x);          // the last two dimensions exchanged: [N, T, d] -> [N, d, T]
Value reverse(Graph& g, Value x, int axis);  // the last element along the axis first

}  // namespace echelon::ops
