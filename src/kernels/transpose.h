#pragma once
// Rows and columns exchanged: y[b, c, r] = x[b, r, c] for each of `batch` matrices. x and y must not overlap.
// Thread-safe, allocates nothing.

#include <cstddef>

namespace echelon::kernels {

void transpose(const float* x, float* y, std::size_t batch, std::size_t rows, std::size_t cols);
void ref_transpose(const float* x, float* y, std::size_t batch, std::size_t rows, std::size_t cols);

}  // namespace echelon::kernels
