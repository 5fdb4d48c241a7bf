#include "kernels/vector.h"

#include <algorithm>
#include <cmath>

namespace echelon::kernels {

void ref_add(float* dst, const float* a, const float* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = a[i] + b[i];
}

void ref_scale(float* dst, const float* src, float c, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = c * src[i];
}

void ref_axpy(float* dst, float c, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = dst[i] + c * x[i];
}

void ref_lerp(float* dst, const float* a, const float* b, float t, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = a[i] + t * (b[i] - a[i]);
}

bool ref_all_finite(const float* x, std::size_t n) {
  return std::all_of(x, x + n, [](float v) { return std::isfinite(v); });
}

}  // namespace echelon::kernels
