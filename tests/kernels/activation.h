#pragma once
// What the tests of the image kernels share: activations in any layout, random values, comparisons.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "tensor/buffer.h"
#include "tensor/layout.h"

namespace echelon::kernels::test {

constexpr Layout all_layouts[] = {Layout::plain, Layout::channel8, Layout::batch8};

inline bool fits(const Shape& shape, Layout layout) { return layout != Layout::channel8 || shape[1] % 8 == 0; }

inline std::size_t size(const Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  const Stream stream({.seed = seed});
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = stream.normal(i);
  return values;
}

// Where element `i` of the plain activation lies in `layout`: written out naively, independent of kernels/relayout.
inline std::size_t position(const Shape& s, Layout layout, std::int64_t i) {
  const std::int64_t x = i % s[3], y = i / s[3] % s[2], c = i / s[3] / s[2] % s[1], n = i / s[3] / s[2] / s[1];
  std::int64_t at = i;
  if (layout == Layout::channel8) at = (((n * (s[1] / 8) + c / 8) * s[2] + y) * s[3] + x) * 8 + c % 8;
  if (layout == Layout::batch8) at = (((n / 8 * s[1] + c) * s[2] + y) * s[3] + x) * 8 + n % 8;
  return static_cast<std::size_t>(at);
}

// An activation in some layout, filled from plain values; what is padding holds `garbage`.
class Activation {
 public:
  Activation(const Shape& shape, Layout layout, const std::vector<float>& plain = {}, float garbage = 777.0f)
      : shape_(shape), layout_(layout), memory_(static_cast<std::size_t>(stored_elements(shape, layout)) * 4) {
    for (float& v : memory_.as<float>()) v = garbage;
    for (std::size_t i = 0; i < plain.size(); ++i)
      data()[position(shape, layout, static_cast<std::int64_t>(i))] = plain[i];
  }
  float* data() { return memory_.as<float>().data(); }
  const float* data() const { return memory_.as<float>().data(); }
  std::vector<float> plain() {
    std::vector<float> values(size(shape_));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = data()[position(shape_, layout_, static_cast<std::int64_t>(i))];
    return values;
  }

 private:
  Shape shape_;
  Layout layout_;
  Buffer memory_;
};

// All differences are within `tolerance` of the largest expected magnitude, or of `magnitude` if that is larger (for
// results in which large terms cancel).
inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance,
                         float magnitude = 1e-6f) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = magnitude, worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const float off = std::abs(actual[i] - expected[i]);
    if (!(off <= worst)) worst = off, where = i;  // NaN is the worst of all
  }
  ASSERT_LE(worst, tolerance * largest) << "at " << where << ": " << actual[where] << " instead of " << expected[where];
}

// The central difference of `loss()` when `value` moves.
template <typename Loss>
double slope(float& value, Loss loss, float step = 1e-2f) {
  const float kept = value;
  value = kept + step;
  const double up = loss();
  const float high = value;
  value = kept - step;
  const double down = loss(), width = static_cast<double>(high) - value;
  value = kept;
  return (up - down) / width;
}

}  // namespace echelon::kernels::test
