#pragma once
// Layer normalisation over the rows of x[rows, cols]: y = (x - mean) * rstd * gamma + beta with the row's mean and
// rstd = 1 / sqrt(variance + eps), variance divided by cols, as torch.nn.LayerNorm. gamma and beta may be null (1 and
// 0). mean and rstd, one each per row, are what the gradient needs; null when nobody does. y may be x.
// Thread-safe, allocates nothing, fixed order of summation.

#include <cstddef>

namespace echelon::kernels {

void layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean, float* rstd,
                std::size_t rows, std::size_t cols);

// dx (may be dy; null to skip), dgamma and dbeta (both or neither null) in one pass over x and dy; all are
// overwritten, not added to. With `go_on`, dgamma and dbeta are those of the rows before these ones, a multiple of
// layer_norm_rows of them, and become those of all: the same bits as in one call.
inline constexpr std::size_t layer_norm_rows = 4;
void layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                     float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols, bool go_on = false);

void ref_layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean,
                    float* rstd, std::size_t rows, std::size_t cols);
void ref_layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                         float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols);

}  // namespace echelon::kernels
