#pragma once
// Batch normalisation over N, H, W of one micro-batch, in any layout, fused with what commonly follows it:
//   y = [relu]( (x - mean) * rstd * gamma + beta [+ residual] )
// Own kernels, because what costs is passes over memory: the statistics are one pass, and everything after them is one
// more, forward and backward (figures in batch_norm.cpp). Thread-safe, allocates nothing, deterministic. Lanes of
// batch8 past N may hold anything and do not influence a result.

#include <cstdint>

#include "tensor/layout.h"

namespace echelon::kernels {

struct BatchNormShape {
  std::int64_t n = 1, c = 1, pixels = 1;  // pixels = H * W
};

// Training. The variance is accurate also when the mean is thousands of standard deviations away from zero.
struct BatchNormForward {
  const float *x, *gamma, *beta;    // gamma, beta: [C]
  const float* residual = nullptr;  // added before the relu; in x's layout
  bool relu = false;
  float eps = 1e-5f;
  float* y;                   // may be x or residual itself
  float *mean, *rstd;         // [C]: of this micro-batch; rstd = 1 / sqrt(biased variance + eps)
  float* variance = nullptr;  // [C], biased, if not null: what running statistics are made from
};
void batch_norm_forward(const BatchNormShape& shape, Layout layout, const BatchNormForward& args);

// Evaluation, with running statistics.
struct BatchNormInference {
  const float *x, *gamma, *beta, *mean, *variance;
  const float* residual = nullptr;
  bool relu = false;
  float eps = 1e-5f;
  float* y;
};
void batch_norm_inference(const BatchNormShape& shape, Layout layout, const BatchNormInference& args);

// The gradients of BatchNormForward.
struct BatchNormBackward {
  const float *x, *gamma, *beta, *mean, *rstd, *dy;
  bool relu = false;
  const float* y = nullptr;  // the forward's output; needed if there was a relu and a residual, else recomputed from x
  float* dx;                 // may be dy itself, unless d_residual is
  float *dgamma, *dbeta;     // [C]
  float* d_residual = nullptr;  // dy behind the relu, if not null; may be dy itself
};
void batch_norm_backward(const BatchNormShape& shape, Layout layout, const BatchNormBackward& args);

// The readable twins: plain layout, double sums, two passes for the variance.
void ref_batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& args);
void ref_batch_norm_inference(const BatchNormShape& shape, const BatchNormInference& args);
void ref_batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& args);  // needs y if relu

}  // namespace echelon::kernels
