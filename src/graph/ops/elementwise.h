#pragma once
// Element-wise arithmetic and activations. Each call adds one node; the fusion pass (passes/fuse.h) later joins chains
// of them into one node that reads every input once and writes once.

#include "graph/graph.h"
#include "kernels/elementwise.h"

namespace echelon::ops {

Value add(Graph& g, Value a, Value b);
Value sub(Graph& g, Value a, Value b);
Value mul(Graph& g, Value a, Value b);
Value div(Graph& g, Value a, Value b);
Value scale(Graph& g, Value x, float factor);
Value offset(Graph& g, Value x, float summand);
Value square(Graph& g, Value x);
Value sqrt(Graph& g, Value x);
Value exp(Graph& g, Value x);
Value log(Graph& g, Value x);
Value abs(Graph& g, Value x);

Value relu(Graph& g, Value x);
Value leaky_relu(Graph& g, Value x, float slope = 0.01f);
Value gelu(Graph& g, Value x);  // the exact one, with erf
Value sigmoid(Graph& g, Value x);
Value tanh(Graph& g, Value x);
Value softplus(Graph& g, Value x);
Value elu(Graph& g, Value x, float alpha = 1.0f);

// x times the scalar s[1], which is known only at run time (a loss's own gradient, for example). s gets no gradient.
Value scale_by(Graph& g, Value x, Value s);
Value copy(Graph& g, Value x);

// The fused form that passes/fuse.h emits: `program` over `in`, all of one shape.
std::shared_ptr<const Op> elementwise_op(std::vector<kernels::EwStep> program);
// The program of an element-wise node, or null if the op is not one.
const std::vector<kernels::EwStep>* elementwise_program(const Op& op);

}  // namespace echelon::ops
