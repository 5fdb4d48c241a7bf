#include "data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace echelon::data {
namespace {

std::vector<std::uint64_t> order(std::uint64_t seed, std::uint32_t epoch, std::uint64_t n) {
  const Permutation p(seed, epoch, n);
  std::vector<std::uint64_t> out(n);
  for (std::uint64_t i = 0; i < n; ++i) out[i] = p(i);
  return out;
}

TEST(Permutation, VisitsEverythingOnce) {
  for (const std::uint64_t n : {1, 2, 3, 5, 16, 17, 100, 1023, 1024, 1025, 60000}) {
    auto seen = order(3, 1, n);
    std::ranges::sort(seen);
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], i) << n;
  }
}

TEST(Permutation, StaysWithinVeryLargeRanges) {
  const std::uint64_t n = (1ull << 40) + 12345;
  const Permutation p(1, 0, n);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_LT(p(n - 1 - i), n);
}

TEST(Permutation, DependsOnSeedAndEpochAndNothingElse) {
  EXPECT_EQ(order(3, 1, 1000), order(3, 1, 1000));
  EXPECT_NE(order(3, 1, 1000), order(3, 2, 1000));
  EXPECT_NE(order(3, 1, 1000), order(4, 1, 1000));
  EXPECT_NE(order(3, 0, 1000), order(3ull << 32, 0, 1000));
}

// The order of stored samples must not change with a release: a run resumed tomorrow walks on where it stopped today.
TEST(Permutation, IsPinned) {
  const Permutation p(42, 7, 60000);
  EXPECT_EQ(p(0), 13963u);
  EXPECT_EQ(p(1), 3901u);
  EXPECT_EQ(p(59999), 22746u);
}

// Looks random: where a sample lands is uniform (chi-square over 16 x 16 cells, many epochs), neighbours do not stay
// neighbours, and no more points stay fixed than chance would leave.
TEST(Permutation, LooksRandom) {
  constexpr std::uint64_t n = 16 * 16;
  constexpr int epochs = 2000;
  std::vector<int> cells(16 * 16);
  std::uint64_t fixed = 0, neighbours = 0;
  for (std::uint32_t e = 0; e < epochs; ++e) {
    const auto o = order(99, e, n);
    for (std::uint64_t i = 0; i < n; ++i) {
      ++cells[(i / 16) * 16 + o[i] / 16];
      fixed += o[i] == i;
      neighbours += i > 0 && (o[i] == o[i - 1] + 1 || o[i - 1] == o[i] + 1);
    }
  }
  const double expected = epochs * static_cast<double>(n) / 256;
  double chi = 0;
  for (const int c : cells) chi += (c - expected) * (c - expected) / expected;
  EXPECT_LT(chi, 225 + 5 * 21.2);  // 15 x 15 degrees of freedom, deviation sqrt(2 * 225)
  EXPECT_NEAR(static_cast<double>(fixed) / epochs, 1.0, 0.15);
  EXPECT_NEAR(static_cast<double>(neighbours) / epochs, 2.0, 0.2);
}

}  // namespace
}  // namespace echelon::data
