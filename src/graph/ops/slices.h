#pragma once
// What joins the slices of a layer again (graph/passes/slice.h), and what hands a whole value out to them. Their inputs
// and outputs are in the order of the slices.

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

// The sum of values of one shape, always in the same binary tree (base/tree.h). Each of them gets the sum's gradient.
Value tree_sum(Graph& g, std::vector<Value> xs);
bool is_tree_sum(const Op& op);
// SliceRule::join of ops whose first output is an addend: the tree_sum of all slices'.
std::vector<Value> add_up_slices(Graph& g, const std::vector<std::vector<Value>>& outputs,
                                 const std::vector<Value>& in);

// Cuts x along an axis into neighbouring parts of the given extents. The gradient joins what comes back.
std::vector<Value> split(Graph& g, Value x, int axis, const std::vector<std::int64_t>& extents);

}  // namespace echelon::ops
