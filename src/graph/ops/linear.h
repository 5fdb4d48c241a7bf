#pragma once
// Matrix products. All on row-major memory; leading dimensions of `x` are folded into rows.

#include "graph/graph.h"

namespace echelon::ops {

// y[.., n] = x[.., k] w[n, k]^T + b[n]; `b` may be no value.
Value linear(Graph& g, Value x, Value w, Value b);

// op(a) op(b) on matrices, with either of them transposed.
Value matmul(Graph& g, Value a, Value b, bool transpose_a = false, bool transpose_b = false);

// x[.., n] + b[n..]: `b`'s shape is the tail of x's shape (a bias, a table of positions).
Value add_tail(Graph& g, Value x, Value b);

// The sum over all leading dimensions: x's shape ends in `tail`, which is also the result's shape.
Value sum_to_tail(Graph& g, Value x, Shape tail);

// Whether `op` is matmul(a, b, true, false), as which the gradient of a linear layer's weights is computed.
bool is_transposed_product(const Op& op);

// For passes/fuse.h: the same linear op with a ReLU on its result, or null if `op` is not a plain linear.
std::shared_ptr<const Op> linear_with_relu(const Op& op);

}  // namespace echelon::ops
