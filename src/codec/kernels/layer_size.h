#pragma once
// The size of a layer's numbers: their root mean square, the unit of thresholds and scales.

#include <algorithm>
#include <cmath>
#include <span>

#include "codec/kernels/levels.h"

namespace echelon::codecs {

// 0 for a root mean square that is zero, infinite or NaN.
inline float size_of(double squares, std::size_t n) {
  const auto size = static_cast<float>(std::sqrt(squares / static_cast<double>(n)));
  return size < 1e-30f || !std::isfinite(size) ? 0 : size;
}
inline float layer_size(std::span<const float> x) { return size_of(moments(x).squares, x.size()); }

// The same of x + more, which x becomes, in one pass.
float add_and_size(std::span<float> x, const float* more);

// A threshold in units of that size, or as it is. Always one that floats can be compared with and multiplied by.
inline float in_units_of(float size, float threshold) {
  return size == 0 ? threshold : std::clamp(threshold * size, 1e-37f, 1e37f);
}

}  // namespace echelon::codecs
