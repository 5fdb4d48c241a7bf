#include "kernels/norm/group_norm.h"

#include "kernels/norm/layer_norm.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon::kernels {

namespace {

// The sum of (x - mean) * dy, in eight partial sums that are folded in one order.
double centred_dot(const float* x, float mean, const float* dy, std::size_t n) {
  constexpr std::size_t lanes = 8, block = 4096;
  double total = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = begin + block < n ? begin + block : n;
    float part[lanes] = {};
    std::size_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (std::size_t k = 0; k < lanes; ++k) part[k] += (x[i + k] - mean) * dy[i + k];
    for (std::size_t k = 0; i < end; ++i, ++k) part[k] += (x[i] - mean) * dy[i];
    total += static_cast<double>((part[0] + part[4]) + (part[2] + part[6])) +
             static_cast<double>((part[1] + part[5]) + (part[3] + part[7]));
  }
  return total;
}

}  // namespace

void group_norm(const GroupNormShape& s, const float* x, const float* gamma, const float* beta, float eps, float* y,
                float* mean, float* rstd) {
  layer_norm(x, nullptr, nullptr, eps, y, mean, rstd, s.rows(), s.cols());
  for (std::size_t n = 0; n < s.samples; ++n)
    for (std::size_t c = 0; c < s.channels; ++c) {
      float* const row = y + (n * s.channels + c) * s.inner;
      const float scale_by = gamma[c], shift = beta[c];
      for (std::size_t i = 0; i < s.inner; ++i) row[i] = row[i] * scale_by + shift;
    }
}

void group_norm_grad(const GroupNormShape& s, const float* x, const float* gamma, const float* mean, const float* rstd,
                     const float* dy, float* dx, float* dgamma, float* dbeta) {
  const std::size_t together = s.channels / s.groups;
  for (std::size_t c = 0; c < s.channels; ++c) {  // before dx overwrites dy
    double along = 0, all = 0;
    for (std::size_t n = 0; n < s.samples; ++n) {
      const std::size_t at = (n * s.channels + c) * s.inner, group = n * s.groups + c / together;
      along += rstd[group] * centred_dot(x + at, mean[group], dy + at, s.inner);
      all += sum(dy + at, s.inner);
    }
    dgamma[c] = static_cast<float>(along);
    dbeta[c] = static_cast<float>(all);
  }
  for (std::size_t n = 0; n < s.samples; ++n)
    for (std::size_t c = 0; c < s.channels; ++c) {
      const std::size_t at = (n * s.channels + c) * s.inner;
      scale(dx + at, dy + at, gamma[c], s.inner);
    }
  layer_norm_grad(x, nullptr, mean, rstd, dx, dx, nullptr, nullptr, s.rows(), s.cols());
}

}  // namespace echelon::kernels
