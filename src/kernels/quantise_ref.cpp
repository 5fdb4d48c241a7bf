#include <algorithm>
#include <cmath>

#include "kernels/quantise.h"

namespace echelon::kernels {

namespace {

float with_sign_of(float x, float size) { return std::isnan(x) ? x : x < 0 ? -size : size; }

float back(const Steps& s, float level) {
  if (!std::isfinite(level)) return level - level;  // no number
  return std::clamp(level, s.least, s.most) * s.out_scale + s.out_offset;
}

}  // namespace

void ref_round_to_steps(const Steps& s, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = back(s, std::nearbyint(x[i] * s.in_scale + s.in_offset));
}

void ref_round_by_chance(const Steps& s, const Stream& stream, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = back(s, std::floor(x[i] * s.in_scale + s.in_offset + stream.uniform(i)));
}

void ref_signs(float size, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = with_sign_of(x[i], size);
}

void ref_three_values(float threshold, float size, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::fabs(x[i]) > threshold ? with_sign_of(x[i], size) : 0.0f;
}

void ref_pass_between(float least, float most, const float* x, const float* dy, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = x[i] >= least && x[i] <= most ? dy[i] : 0.0f;
}

Above ref_above(float threshold, const float* x, std::size_t n) {
  Above total;
  for (std::size_t i = 0; i < n; ++i)
    if (std::fabs(x[i]) > threshold) total.sum += static_cast<double>(std::fabs(x[i])), total.count += 1;
  return total;
}

}  // namespace echelon::kernels
