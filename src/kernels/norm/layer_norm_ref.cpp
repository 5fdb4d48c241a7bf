#include <cmath>

#include "kernels/norm/layer_norm.h"

namespace echelon::kernels {

void ref_layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean,
                    float* rstd, std::size_t rows, std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    double m = 0, variance = 0;
    for (std::size_t c = 0; c < cols; ++c) m += x[c];
    m /= static_cast<double>(cols);
    for (std::size_t c = 0; c < cols; ++c) variance += (x[c] - m) * (x[c] - m);
    variance /= static_cast<double>(cols);
    const double inverse = 1 / std::sqrt(variance + eps);
    if (mean != nullptr) mean[r] = static_cast<float>(m);
    if (rstd != nullptr) rstd[r] = static_cast<float>(inverse);
    for (std::size_t c = 0; c < cols; ++c) {
      const double g = gamma == nullptr ? 1 : gamma[c], b = beta == nullptr ? 0 : beta[c];
      y[c] = static_cast<float>((x[c] - m) * inverse * g + b);
    }
  }
}

void ref_layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                         float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols) {
  const auto normalised = [&](std::size_t r, std::size_t c) {
    return (static_cast<double>(x[r * cols + c]) - mean[r]) * rstd[r];
  };
  if (dgamma != nullptr)
    for (std::size_t c = 0; c < cols; ++c) {
      double g = 0, b = 0;
      for (std::size_t r = 0; r < rows; ++r) g += dy[r * cols + c] * normalised(r, c), b += dy[r * cols + c];
      dgamma[c] = static_cast<float>(g);
      dbeta[c] = static_cast<float>(b);
    }
  if (dx == nullptr) return;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto upstream = [&](std::size_t c) {
      return static_cast<double>(dy[r * cols + c]) * (gamma == nullptr ? 1 : gamma[c]);
    };
    double plain = 0, along = 0;  // the means of upstream and of upstream * normalised
    for (std::size_t c = 0; c < cols; ++c) plain += upstream(c), along += upstream(c) * normalised(r, c);
    plain /= static_cast<double>(cols);
    along /= static_cast<double>(cols);
    for (std::size_t c = 0; c < cols; ++c)
      dx[r * cols + c] = static_cast<float>(rstd[r] * (upstream(c) - plain - normalised(r, c) * along));
  }
}

}  // namespace echelon::kernels
