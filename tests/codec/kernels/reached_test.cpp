// What has reached a threshold, against a plain loop.

#include "codec/kernels/reached.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace echelon::codecs {
namespace {

struct Told {
  std::vector<std::uint16_t> entries;
  std::vector<float> left;
};

Told plainly(std::vector<float> x, float threshold, std::size_t first) {
  Told told;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i]) < threshold) continue;  // a NaN goes on
    told.entries.push_back(static_cast<std::uint16_t>((first + i) | (std::signbit(x[i]) ? 0x8000u : 0u)));
    x[i] -= std::copysign(threshold, x[i]);
  }
  told.left = x;
  return told;
}

// Equal bits, so that NaN equals NaN.
std::vector<std::uint32_t> bits_of(const std::vector<float>& x) {
  std::vector<std::uint32_t> bits;
  for (const float v : x) bits.push_back(std::isnan(v) ? 0x7FC00000u : std::bit_cast<std::uint32_t>(v));
  return bits;
}

TEST(Reached, IsWhatAPlainLoopFinds) {
  const Stream random({.seed = 5});
  for (const std::size_t n : {0, 1, 7, 8, 9, 31, 32, 33, 1000, 4096})
    for (const float threshold : {1e-37f, 0.5f, 2.0f, 100.0f}) {
      std::vector<float> x(n), more(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = random.normal(i), more[i] = random.normal(i + n);
      if (n > 20) x[3] = 0.5f, x[4] = -0.5f, x[5] = -0.0f, x[6] = std::nextafter(0.5f, 0.0f);
      if (n > 20) x[10] = std::numeric_limits<float>::quiet_NaN(), x[11] = -std::numeric_limits<float>::infinity();
      std::vector<float> sum(n), left = x, left_of_sum = x;
      for (std::size_t i = 0; i < n; ++i) sum[i] = x[i] + more[i];
      const std::size_t first = 32768 - n;  // up to the last place of a block
      std::vector<std::uint16_t> entries(n + entries_beyond);
      const auto found = [&](std::size_t count) {
        return std::vector(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
      };

      const Told of_x = plainly(x, threshold, first), of_sum = plainly(sum, threshold, first);
      ASSERT_EQ(found(reached(x, threshold, first, entries.data())), of_x.entries) << n;
      ASSERT_EQ(found(take_reached(left, threshold, first, entries.data())), of_x.entries) << n;
      ASSERT_EQ(bits_of(left), bits_of(of_x.left)) << n;
      ASSERT_EQ(found(add_and_take_reached(left_of_sum, more.data(), threshold, first, entries.data())),
                of_sum.entries);
      ASSERT_EQ(bits_of(left_of_sum), bits_of(of_sum.left)) << n;
    }
}

}  // namespace
}  // namespace echelon::codecs
