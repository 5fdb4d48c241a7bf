#pragma once
// Moving data without changing it.

#include "graph/graph.h"

namespace echelon::ops {

Value reshape(Graph& g, Value x, Shape shape);  // a view; one extent may be -1
Value flatten(Graph& g, Value x);               // [N, ...] -> [N, rest]
Value concat(Graph& g, std::vector<Value> xs, int axis);
Value slice(Graph& g, Value x, int axis, std::int64_t begin, std::int64_t end);
Value relayout(Graph& g, Value x, Layout to);  // inserted by passes/layout.h

}  // namespace echelon::ops
