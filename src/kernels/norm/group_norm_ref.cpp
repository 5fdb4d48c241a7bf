#include <cmath>

#include "kernels/norm/group_norm.h"

namespace echelon::kernels {

void ref_group_norm(const GroupNormShape& s, const float* x, const float* gamma, const float* beta, float eps, float* y,
                    float* mean, float* rstd) {
  const std::size_t cols = s.cols();
  for (std::size_t r = 0; r < s.rows(); ++r) {
    double average = 0, variance = 0;
    for (std::size_t i = 0; i < cols; ++i) average += x[r * cols + i];
    average /= static_cast<double>(cols);
    for (std::size_t i = 0; i < cols; ++i) variance += (x[r * cols + i] - average) * (x[r * cols + i] - average);
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(cols) + eps);
    mean[r] = static_cast<float>(average);
    rstd[r] = static_cast<float>(inverse);
    for (std::size_t i = 0; i < cols; ++i) {
      const std::size_t c = r % s.groups * (s.channels / s.groups) + i / s.inner;
      y[r * cols + i] = static_cast<float>((x[r * cols + i] - average) * inverse * gamma[c] + beta[c]);
    }
  }
}

// With g = dy * gamma and h = (x - mean) * rstd, each group's dx = rstd * (g - mean of g - h * mean of (g h)).
void ref_group_norm_grad(const GroupNormShape& s, const float* x, const float* gamma, const float* mean,
                         const float* rstd, const float* dy, float* dx, float* dgamma, float* dbeta) {
  const std::size_t cols = s.cols();
  const auto channel = [&](std::size_t r, std::size_t i) {
    return r % s.groups * (s.channels / s.groups) + i / s.inner;
  };
  for (std::size_t c = 0; c < s.channels; ++c) {
    double along = 0, all = 0;
    for (std::size_t r = 0; r < s.rows(); ++r)
      for (std::size_t i = 0; i < cols; ++i) {
        if (channel(r, i) != c) continue;
        const double d = dy[r * cols + i];
        along += d * (static_cast<double>(x[r * cols + i]) - mean[r]) * rstd[r];
        all += d;
      }
    dgamma[c] = static_cast<float>(along);
    dbeta[c] = static_cast<float>(all);
  }
  for (std::size_t r = 0; r < s.rows(); ++r) {
    double mean_g = 0, mean_gh = 0;
    const auto g = [&](std::size_t i) { return static_cast<double>(dy[r * cols + i]) * gamma[channel(r, i)]; };
    const auto h = [&](std::size_t i) { return (static_cast<double>(x[r * cols + i]) - mean[r]) * rstd[r]; };
    for (std::size_t i = 0; i < cols; ++i) mean_g += g(i), mean_gh += g(i) * h(i);
    mean_g /= static_cast<double>(cols), mean_gh /= static_cast<double>(cols);
    for (std::size_t i = 0; i < cols; ++i)
      dx[r * cols + i] = static_cast<float>(rstd[r] * (g(i) - mean_g - h(i) * mean_gh));
  }
}

}  // namespace echelon::kernels
