#pragma once
// Batch norm's ops as the fusion pass (passes/fuse_batch_norm.h) sees them; networks use ops/norm.h.

#include "graph/graph.h"

namespace echelon::ops {

// What a batch norm computes besides normalising: y = relu(norm(x) + residual).
struct BatchNormExtras {
  bool relu = false;
  bool residual = false;  // one more input, behind the others
};

// The forward op (training or not) without extras: null if `op` is anything else.
bool is_plain_batch_norm(const Op& op);
std::shared_ptr<const Op> batch_norm_with(const Op& plain, BatchNormExtras extras);

// The gradient op, (x, gamma, beta, mean, rstd, dy) -> (dx, dgamma, dbeta). With a ReLU, dy is the gradient behind it;
// with a residual too, the forward's output is one more input and the residual's gradient one more output.
bool is_plain_batch_norm_grad(const Op& op);
std::shared_ptr<const Op> batch_norm_grad_with(const Op& plain, BatchNormExtras extras);

}  // namespace echelon::ops
