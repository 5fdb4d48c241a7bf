#include "data/normals.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace echelon::data {
namespace {

TEST(Normals, AreThoseOfTheStream) {
  for (const std::size_t n : {0, 1, 2, 3, 5, 127, 128, 129, 100003}) {
    const Stream stream({.seed = n, .step = 1});
    std::vector<float> numbers(n);
    fill_normals(stream, numbers);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(numbers[i], stream.normal(i), 2e-5) << n << " " << i;
  }
}

// The extremes of both random words give finite numbers.
TEST(Normals, AreFiniteAndReachFar) {
  std::vector<float> numbers(1 << 22);
  fill_normals(Stream({.seed = 5}), numbers);
  float most = 0;
  for (const float v : numbers) {
    ASSERT_TRUE(std::isfinite(v));
    most = std::max(most, std::abs(v));
  }
  EXPECT_GT(most, 4.5f);
  EXPECT_LT(most, 7.0f);
}

// Training on noisy images must not change with a release or a machine: the very bits.
TEST(Normals, ArePinned) {
  std::vector<float> numbers(1000);
  fill_normals(Stream({.seed = 42, .step = 7, .shard = 3, .layer = 1}), numbers);
  std::uint64_t hash = 14695981039346656037ull;
  for (const float v : numbers) hash = (hash ^ std::bit_cast<std::uint32_t>(v)) * 1099511628211ull;
  EXPECT_EQ(hash, 13774959512473653194ull);
}

}  // namespace
}  // namespace echelon::data
