#pragma once
// Local response normalisation across channels (Krizhevsky et al. 2012), as PyTorch defines it:
//   y[c] = x[c] / s[c]^beta,  s[c] = k + alpha / size * (sum of x[i]^2 for i in [c - size/2, c + (size-1)/2])
// In any layout; input and output have the same one. Thread-safe, deterministic, allocates nothing: `scratch`
// (64-byte aligned, `lrn_scratch` bytes, for either direction) is the caller's and holds nothing between calls.

#include <cstddef>
#include <cstdint>

#include "tensor/layout.h"

namespace echelon::kernels {

struct LrnShape {
  std::int64_t n = 1, c = 1, pixels = 1;  // pixels = H * W
  int size = 5;                           // of the window, > 0
  float alpha = 1e-4f, beta = 0.75f, k = 1.0f;
};

std::size_t lrn_scratch(const LrnShape& shape, Layout layout);
void lrn_forward(const LrnShape& shape, Layout layout, const float* x, float* y, std::byte* scratch);
void lrn_backward(const LrnShape& shape, Layout layout, const float* x, const float* dy, float* dx,
                  std::byte* scratch);  // dx must be neither x nor dy

void ref_lrn_forward(const LrnShape& shape, const float* x, float* y);
void ref_lrn_backward(const LrnShape& shape, const float* x, const float* dy, float* dx);

}  // namespace echelon::kernels
