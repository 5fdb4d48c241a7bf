#include "kernels/quantise.h"

#include <limits>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(Quantise, EveryOperationGivesTheReferencesBits) {
  const Steps sixteenths{.in_scale = 16, .least = -20, .most = 19, .out_scale = 1.0f / 16};
  const Steps shifted{.in_scale = 1.3f, .in_offset = 7.5f, .least = 0, .most = 15, .out_scale = 0.7f, .out_offset = -3};
  const Stream stream({.seed = 4, .step = 7});
  on_every_target([&] {
    for (const std::size_t n : odd_sizes) {
      Fenced x = fenced_values(n, 1);
      const Fenced dy = fenced_values(n, 2);
      for (std::size_t i = 0; i < n; i += 5) x[i] = static_cast<float>(i % 3) - 1;  // borders: -1, 0, 1
      Fenced got(n), want(n);
      for (const Steps& s : {sixteenths, shifted}) {
        round_to_steps(s, x.data(), got.data(), n);
        ref_round_to_steps(s, x.data(), want.data(), n);
        expect_same(got, want);
        round_by_chance(s, stream, x.data(), got.data(), n);
        ref_round_by_chance(s, stream, x.data(), want.data(), n);
        expect_same(got, want);
      }
      signs(0.3f, x.data(), got.data(), n);
      ref_signs(0.3f, x.data(), want.data(), n);
      expect_same(got, want);
      three_values(1, 0.3f, x.data(), got.data(), n);
      ref_three_values(1, 0.3f, x.data(), want.data(), n);
      expect_same(got, want);
      pass_between(-1, 1, x.data(), dy.data(), got.data(), n);
      ref_pass_between(-1, 1, x.data(), dy.data(), want.data(), n);
      expect_same(got, want);

      const Above fast = above(0.8f, x.data(), n), plain = ref_above(0.8f, x.data(), n);
      EXPECT_EQ(fast.count, plain.count);
      EXPECT_NEAR(fast.sum, plain.sum, 1e-6 * plain.sum);
    }
  });
}

TEST(Quantise, WhatIsNoNumberStaysNone) {
  on_every_target([] {
    const Fenced x(9, std::numeric_limits<float>::quiet_NaN());
    Fenced a(9), b(9), c(9);
    round_to_steps({.most = 3}, x.data(), a.data(), 9);
    round_by_chance({.most = 3}, Stream({}), x.data(), b.data(), 9);
    signs(1, x.data(), c.data(), 9);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(a[i]) && std::isnan(b[i]) && std::isnan(c[i])) << i;
  });
}

// An infinity is an overflow that has happened before: taken for the largest number it would go unnoticed.
TEST(Quantise, RoundingDoesNotHideAnOverflow) {
  on_every_target([] {
    for (const float sign : {1.0f, -1.0f}) {
      const Fenced x(9, sign * std::numeric_limits<float>::infinity());
      Fenced a(9), b(9), want(9);
      round_to_steps({.most = 3}, x.data(), a.data(), 9);
      round_by_chance({.most = 3}, Stream({}), x.data(), b.data(), 9);
      ref_round_to_steps({.most = 3}, x.data(), want.data(), 9);
      for (std::size_t i = 0; i < 9; ++i) EXPECT_TRUE(std::isnan(a[i]) && std::isnan(b[i]) && std::isnan(want[i])) << i;
    }
  });
}

TEST(Quantise, SumsHaveTheSameBitsOnEveryTarget) {
  const Fenced x = fenced_values(9001, 3);
  std::vector<double> sums;
  on_every_target([&] { sums.push_back(above(0.5f, x.data(), x.size()).sum); });
  for (double s : sums) EXPECT_EQ(s, sums[0]);
}

TEST(Quantise, RoundingByChanceKeepsTheMean) {
  // 0.3 between 0 and 1: up in three cases of ten. Four standard deviations of the mean of 20000 such draws.
  const Fenced x(20000, 0.3f);
  Fenced y(x.size());
  double sum = 0;
  round_by_chance({.least = -8, .most = 7}, Stream({.seed = 9}), x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_TRUE(y[i] == 0 || y[i] == 1) << y[i];
    sum += static_cast<double>(y[i]);
  }
  EXPECT_NEAR(sum / 20000, 0.3, 4 * std::sqrt(0.3 * 0.7 / 20000));
}

}  // namespace
}  // namespace echelon::kernels
