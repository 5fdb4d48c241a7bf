#include "kernels/norm/batch_norm_parts.h"

#include <algorithm>
#include <cmath>

namespace echelon::kernels {

namespace {

// Calls f(channel, begin, end) for every row of pixels, channel by channel, samples in their order.
template <typename F>
void for_each_channel_row(const NormPart& p, F&& f) {
  for (std::size_t c = 0; c < p.channels; ++c)
    for (std::size_t n = 0; n < p.n; ++n) {
      const std::size_t begin = (n * p.channels + c) * p.pixels;
      f(c, begin, begin + p.pixels);
    }
}

float mean_of(const NormPart& p, const float* total, std::size_t c) { return static_cast<float>(total[c] / p.count); }
float rstd_of(const NormPart& p, const float* squares, std::size_t c) {
  return static_cast<float>(1 / std::sqrt(squares[c] / p.count + static_cast<double>(p.eps)));
}

}  // namespace

void part_squares(const NormPart& p, const float* x, const float* total, float* squares) {
  for (std::size_t c = 0; c < p.channels; ++c) {
    const float mean = mean_of(p, total, c);
    double sum = 0;
    for (std::size_t n = 0; n < p.n; ++n) {
      const float* row = x + (n * p.channels + c) * p.pixels;
      for (std::size_t i = 0; i < p.pixels; ++i) {
        const double d = row[i] - mean;
        sum += d * d;
      }
    }
    squares[c] = static_cast<float>(sum);
  }
}

void part_squares_grad(const NormPart& p, const float* x, const float* total, const float* d, float* dx) {
  for_each_channel_row(p, [&](std::size_t c, std::size_t begin, std::size_t end) {
    const float mean = mean_of(p, total, c), factor = 2 * d[c];
    for (std::size_t i = begin; i < end; ++i) dx[i] = factor * (x[i] - mean);
  });
}

void part_normalise(const NormPart& p, const float* x, const float* gamma, const float* beta, const float* total,
                    const float* squares, float* y) {
  for_each_channel_row(p, [&](std::size_t c, std::size_t begin, std::size_t end) {
    const float mean = mean_of(p, total, c), factor = gamma[c] * rstd_of(p, squares, c), shift = beta[c];
    for (std::size_t i = begin; i < end; ++i) y[i] = factor * (x[i] - mean) + shift;
  });
}

void part_normalise_grad(const NormPart& p, const float* x, const float* gamma, const float* total,
                         const float* squares, const float* dy, const NormPartGrad& grad) {
  for (std::size_t c = 0; c < p.channels; ++c) {
    const float mean = mean_of(p, total, c), rstd = rstd_of(p, squares, c), factor = gamma[c] * rstd;
    double sum = 0, along = 0;  // of dy, and of dy (x - mean)
    for (std::size_t n = 0; n < p.n; ++n) {
      const std::size_t begin = (n * p.channels + c) * p.pixels;
      for (std::size_t i = begin; i < begin + p.pixels; ++i) {
        sum += dy[i];
        along += static_cast<double>(dy[i]) * (x[i] - mean);
        grad.dx[i] = factor * dy[i];
      }
    }
    const double cube = static_cast<double>(rstd) * rstd * rstd;
    grad.d_gamma[c] = static_cast<float>(along * rstd);
    grad.d_beta[c] = static_cast<float>(sum);
    grad.d_total[c] = static_cast<float>(-sum * factor / p.count);
    grad.d_squares[c] = static_cast<float>(-0.5 * along * gamma[c] * cube / p.count);
  }
}

void repeat_channels(const NormPart& p, const float* d, float* dx) {
  for_each_channel_row(
      p, [&](std::size_t c, std::size_t begin, std::size_t end) { std::fill(dx + begin, dx + end, d[c]); });
}

}  // namespace echelon::kernels
