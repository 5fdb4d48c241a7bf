// The largest numbers, against a full sort.

#include "codec/kernels/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace echelon::codecs {
namespace {

// The same by sorting: the k largest, of equal ones the first, zeros never.
std::vector<std::size_t> sorted_largest(const std::vector<float>& x, std::size_t k, Side side) {
  std::vector<std::size_t> order(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) order[i] = i;
  const auto size = [&](std::size_t i) {
    return side == Side::both ? std::abs(x[i]) : std::max(0.0f, side == Side::positive ? x[i] : -x[i]);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  order.resize(std::min(k, order.size()));
  std::erase_if(order, [&](std::size_t i) { return size(i) == 0; });
  std::ranges::sort(order);
  return order;
}

std::vector<std::size_t> selected(const std::vector<float>& x, std::size_t k, Side side) {
  Selector selector(x.size(), k);
  const auto places = selector.places(x, k, side);
  return {places.begin(), places.end()};
}

TEST(Selector, FindsWhatASortFinds) {
  const Stream random({.seed = 3});
  for (const Side side : {Side::both, Side::positive, Side::negative})
    for (const std::size_t n : {1, 3, 31, 32, 33, 100, 5000, 20011, 70001}) {
      std::vector<float> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = random.normal(i) * (i % 7 == 0 ? 100.0f : 1e-3f);
      for (const std::size_t k : {std::size_t{1}, std::size_t{2}, n / 100, n / 10, n / 2, n, n + 5})
        ASSERT_EQ(selected(x, k, side), sorted_largest(x, k, side)) << n << ' ' << k;
    }
}

// The sixteenth that is looked at first says nothing of the rest, or the opposite.
TEST(Selector, IsNotMisledByTheSample) {
  const Stream random({.seed = 3});
  for (const bool large_in_sample : {true, false}) {
    std::vector<float> x(100000);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = random.normal(i) * ((i % 1024 < 64) == large_in_sample ? 1.0f : 1e-6f);
    for (const std::size_t k : {10, 1000, 50000})
      ASSERT_EQ(selected(x, k, Side::both), sorted_largest(x, k, Side::both));
    std::ranges::fill(x, 2.0f);
    x[70000] = 3;
    ASSERT_EQ(selected(x, 1000, Side::both), sorted_largest(x, 1000, Side::both));
    std::ranges::fill(x, 0.0f);
    x[70000] = 3;
    ASSERT_EQ(selected(x, 1000, Side::both), sorted_largest(x, 1000, Side::both));
  }
}

TEST(Selector, TakesTheFirstOfEqualOnes) {
  for (const Side side : {Side::both, Side::positive, Side::negative}) {
    std::vector<float> x(1000);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
    for (std::size_t k = 0; k <= 1000; k += 37) ASSERT_EQ(selected(x, k, side), sorted_largest(x, k, side)) << k;
    std::ranges::fill(x, 3.0f);
    ASSERT_EQ(selected(x, 10, side), sorted_largest(x, 10, side));
  }
}

TEST(Selector, TellsNumbersApartByTheirLastBit) {
  std::vector<float> x(500, 1.0f);
  x[100] = std::nextafter(1.0f, 2.0f);
  x[200] = -std::nextafter(1.0f, 2.0f);
  x[300] = std::nextafter(1.0f, 0.0f);
  EXPECT_EQ(selected(x, 2, Side::both), (std::vector<std::size_t>{100, 200}));
  EXPECT_EQ(selected(x, 1, Side::negative), (std::vector<std::size_t>{200}));
}

TEST(Selector, HoldsNumbersThatAreNoneForTheLargest) {
  std::vector<float> x(100, 1e30f);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  x[41] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(selected(x, 2, Side::both), (std::vector<std::size_t>{40, 41}));
}

}  // namespace
}  // namespace echelon::codecs
