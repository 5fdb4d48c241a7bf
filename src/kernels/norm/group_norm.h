#pragma once
// Group normalisation of x[samples, channels, inner]: the channels fall to `groups` equal groups, each group of a
// sample is brought to mean 0 and variance 1, and each channel is then scaled and shifted: y = (x - mean) * rstd *
// gamma[c] + beta[c], as torch.nn.GroupNorm. mean and rstd, one each per sample and group, are what the gradient needs.
// Thread-safe, allocates nothing, fixed order of summation.

#include <cstddef>

namespace echelon::kernels {

struct GroupNormShape {
  std::size_t samples = 0, channels = 0, inner = 0, groups = 1;  // groups divides channels
  std::size_t rows() const { return samples * groups; }
  std::size_t cols() const { return channels / groups * inner; }
};

void group_norm(const GroupNormShape& s, const float* x, const float* gamma, const float* beta, float eps, float* y,
                float* mean, float* rstd);
// dx may be dy. All three are overwritten.
void group_norm_grad(const GroupNormShape& s, const float* x, const float* gamma, const float* mean, const float* rstd,
                     const float* dy, float* dx, float* dgamma, float* dbeta);

void ref_group_norm(const GroupNormShape& s, const float* x, const float* gamma, const float* beta, float eps, float* y,
                    float* mean, float* rstd);
void ref_group_norm_grad(const GroupNormShape& s, const float* x, const float* gamma, const float* mean,
                         const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta);

}  // namespace echelon::kernels
