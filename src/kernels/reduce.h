#pragma once
// Sums. Every sum here has one fixed order that depends on the extents only, never on alignment or on the width of the
// vectors: 32 interleaved partial sums in float over at most 4096 elements, folded pairwise, and the blocks' results
// added up in double. No fused multiply-add is used, so SSE4 and AVX2 give the same bits (and so does the ref_ twin).
//
// Thread-safe, allocates nothing.

#include <cstddef>

#include "tensor/layout.h"

namespace echelon::kernels {

double sum(const float* x, std::size_t n);
double dot(const float* x, const float* y, std::size_t n);
double squared_norm(const float* x, std::size_t n);
float max_abs(const float* x, std::size_t n);  // 0 for n == 0; NaN if there is one

// out[c] = sum over r of x[r, c]: the gradient of a bias. Rows r, r + rows/8, r + 2 rows/8, ... are added together.
void column_sum(const float* x, std::size_t rows, std::size_t cols, float* out);

// y[r, c] += bias[c], then max(0, .) if `relu`.
void add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu = false);

// The extents of an image batch; in batch8 memory, lanes past n are not part of any sum.
struct ImageExtents {
  std::size_t n = 0, c = 0, h = 0, w = 0;
};

// out[c] = sum over n, h, w: the gradient of a convolution's bias.
void channel_sum(const float* x, Layout layout, ImageExtents e, float* out);

// y[n, c, h, w] += bias[c], in the plain layout.
void add_channel_bias(float* y, ImageExtents e, const float* bias);

double ref_sum(const float* x, std::size_t n);
double ref_dot(const float* x, const float* y, std::size_t n);
double ref_squared_norm(const float* x, std::size_t n);
float ref_max_abs(const float* x, std::size_t n);
void ref_column_sum(const float* x, std::size_t rows, std::size_t cols, float* out);
void ref_add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu = false);
void ref_channel_sum(const float* x, Layout layout, ImageExtents e, float* out);
void ref_add_channel_bias(float* y, ImageExtents e, const float* bias);

}  // namespace echelon::kernels
