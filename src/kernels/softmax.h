#pragma once
// Softmax over the rows of x[rows, cols]. Safe for any finite logits (the row's maximum is subtracted); -inf gives an
// exact 0, as a mask needs; a row of only -inf gives NaN, as mathematics has it. Outputs may be written over inputs.
// Thread-safe, allocates nothing; a row's result depends on that row only.

#include <cstddef>

namespace echelon::kernels {

void softmax(const float* x, float* y, std::size_t rows, std::size_t cols);
void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols);

void ref_softmax(const float* x, float* y, std::size_t rows, std::size_t cols);
void ref_softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols);

}  // namespace echelon::kernels
