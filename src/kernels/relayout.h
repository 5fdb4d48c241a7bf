#pragma once
// Copies an [N, C, H, W] activation from one layout to another. Lanes of batch8 past N become zero. The two memories
// must not overlap. Thread-safe, allocates nothing.

#include "tensor/layout.h"

namespace echelon::kernels {

// Needs C % 8 == 0 if either layout is channel8.
void relayout(const Shape& shape, Layout from, const float* x, Layout to, float* y);

void ref_relayout(const Shape& shape, Layout from, const float* x, Layout to, float* y);

}  // namespace echelon::kernels
