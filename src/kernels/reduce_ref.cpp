#include <cmath>

#include "kernels/reduce.h"

namespace echelon::kernels {
namespace {

constexpr std::size_t lanes = 32, block = 4096;

// The one order in which everything is added up (see reduce.h); term(i) is what element i contributes.
template <typename Term>
double blocked_sum(std::size_t n, Term term) {
  double total = 0;
  for (std::size_t begin = 0; begin < n; begin += block) {
    float partial[lanes] = {};
    for (std::size_t i = begin; i < n && i < begin + block; ++i) partial[(i - begin) % lanes] += term(i);
    for (std::size_t half = lanes / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) partial[i] += partial[i + half];
    total += partial[0];
  }
  return total;
}

std::size_t index_of(Layout layout, ImageExtents e, std::size_t n, std::size_t c, std::size_t p) {
  const std::size_t pixels = e.h * e.w;
  switch (layout) {
    case Layout::plain: return (n * e.c + c) * pixels + p;
    case Layout::channel8: return ((n * (e.c / 8) + c / 8) * pixels + p) * 8 + c % 8;
    case Layout::batch8: return (((n / 8) * e.c + c) * pixels + p) * 8 + n % 8;
  }
  return 0;
}

}  // namespace

double ref_sum(const float* x, std::size_t n) {
  return blocked_sum(n, [&](std::size_t i) { return x[i]; });
}

double ref_dot(const float* x, const float* y, std::size_t n) {
  return blocked_sum(n, [&](std::size_t i) { return x[i] * y[i]; });
}

double ref_squared_norm(const float* x, std::size_t n) { return ref_dot(x, x, n); }

float ref_max_abs(const float* x, std::size_t n) {
  float greatest = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (!(std::fabs(x[i]) <= greatest)) greatest = std::isnan(greatest) ? greatest : std::fabs(x[i]);
  return greatest;
}

void ref_column_sum(const float* x, std::size_t rows, std::size_t cols, float* out) {
  const std::size_t eighth = rows / 8;
  for (std::size_t c = 0; c < cols; ++c) {
    const auto at = [&](std::size_t r) { return x[r * cols + c]; };
    float total = 0;
    for (std::size_t r = 0; r < eighth; ++r)
      total += ((at(r) + at(r + eighth)) + (at(r + 2 * eighth) + at(r + 3 * eighth))) +
               ((at(r + 4 * eighth) + at(r + 5 * eighth)) + (at(r + 6 * eighth) + at(r + 7 * eighth)));
    for (std::size_t r = 8 * eighth; r < rows; ++r) total += at(r);
    out[c] = total;
  }
}

void ref_add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < cols; ++c) {
      float& v = y[r * cols + c];
      v += bias[c];
      if (relu && v < 0) v = 0;
    }
}

void ref_channel_sum(const float* x, Layout layout, ImageExtents e, float* out) {
  for (std::size_t c = 0; c < e.c; ++c) {
    double total = 0;
    for (std::size_t n = 0; n < e.n; ++n)
      for (std::size_t p = 0; p < e.h * e.w; ++p) total += x[index_of(layout, e, n, c, p)];
    out[c] = static_cast<float>(total);
  }
}

void ref_add_channel_bias(float* y, ImageExtents e, const float* bias) {
  for (std::size_t n = 0; n < e.n; ++n)
    for (std::size_t c = 0; c < e.c; ++c)
      for (std::size_t p = 0; p < e.h * e.w; ++p) y[index_of(Layout::plain, e, n, c, p)] += bias[c];
}

}  // namespace echelon::kernels
