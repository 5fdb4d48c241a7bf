#include <algorithm>
#include <cmath>

#include "kernels/softmax.h"

namespace echelon::kernels {
namespace {

double log_sum_exp(const float* x, std::size_t cols) {
  const double greatest = *std::max_element(x, x + cols);
  double total = 0;
  for (std::size_t c = 0; c < cols; ++c) total += std::exp(x[c] - greatest);
  return greatest + std::log(total);
}

}  // namespace

void ref_softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  if (cols == 0) return;
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double total = log_sum_exp(x, cols);
    for (std::size_t c = 0; c < cols; ++c) y[c] = static_cast<float>(std::exp(x[c] - total));
  }
}

void ref_softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    double inner = 0;
    for (std::size_t c = 0; c < cols; ++c) inner += static_cast<double>(y[c]) * dy[c];
    for (std::size_t c = 0; c < cols; ++c) dx[c] = static_cast<float>(y[c] * (dy[c] - inner));
  }
}

}  // namespace echelon::kernels
