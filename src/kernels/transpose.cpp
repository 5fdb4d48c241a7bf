#include "kernels/transpose.h"

#include <algorithm>

namespace echelon::kernels {

// Square tiles: what is read in rows and written in columns stays in the first-level cache.
void transpose(const float* x, float* y, std::size_t batch, std::size_t rows, std::size_t cols) {
  constexpr std::size_t tile = 16;
  for (std::size_t b = 0; b < batch; ++b, x += rows * cols, y += rows * cols)
    for (std::size_t r0 = 0; r0 < rows; r0 += tile)
      for (std::size_t c0 = 0; c0 < cols; c0 += tile) {
        const std::size_t r1 = std::min(rows, r0 + tile), c1 = std::min(cols, c0 + tile);
        for (std::size_t c = c0; c < c1; ++c)
          for (std::size_t r = r0; r < r1; ++r) y[c * rows + r] = x[r * cols + c];
      }
}

void ref_transpose(const float* x, float* y, std::size_t batch, std::size_t rows, std::size_t cols) {
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c) y[(b * cols + c) * rows + r] = x[(b * rows + r) * cols + c];
}

}  // namespace echelon::kernels
