#include "kernels/gemm/gemm.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "tests/kernels/matrix_numbers.h"
#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

using test::expect_elements_close;
using test::numbers;

std::string name(const Gemm& g) {
  return fmt::format("{}x{}x{} {}{} alpha {} beta {}", g.m, g.n, g.k, g.trans_a ? "T" : "N", g.trans_b ? "T" : "N",
                     g.alpha, g.beta);
}

// Runs g with rows that are `gap` floats longer than needed and checks that the gaps of C stay as they were.
void check(const Gemm& g, std::int64_t gap) {
  const std::int64_t lda = (g.trans_a ? g.m : g.k) + gap, ldb = (g.trans_b ? g.k : g.n) + gap, ldc = g.n + gap;
  const auto a = numbers((g.trans_a ? g.k : g.m) * lda, 1), b = numbers((g.trans_b ? g.n : g.k) * ldb, 2);
  auto c = numbers(g.m * ldc, 3), expected = c;
  if (g.beta == 0)  // C must not be read then
    for (std::int64_t i = 0; i < g.m; ++i)
      std::fill_n(c.begin() + i * ldc, g.n, std::numeric_limits<float>::quiet_NaN());
  Buffer scratch(gemm_scratch(g));
  gemm(g, a.data(), lda, b.data(), ldb, c.data(), ldc, scratch.data());
  ref_gemm(g, a.data(), lda, b.data(), ldb, expected.data(), ldc);
  expect_elements_close(c, expected, 1e-6f * (4 + std::sqrt(static_cast<float>(g.k))), name(g));
}

void check_transposes(Gemm g, std::int64_t gap) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      g.trans_a = ta, g.trans_b = tb;
      check(g, gap);
    }
}

TEST(Gemm, EqualsTheReferenceAtOddSizes) {
  on_every_target([] {
    for (const std::int64_t m : {1, 2, 5, 7, 13, 33})
      for (const std::int64_t n : {1, 3, 8, 10, 17, 37})
        for (const std::int64_t k : {1, 2, 9, 31, 64}) check_transposes({.m = m, .n = n, .k = k}, (m + n + k) % 4);
  });
}

// Law 1: the weights may not tell which processor they were trained on.
TEST(Gemm, HasTheSameBitsWith8And16Lanes) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 100, 300},
                                {12, 32, 256},
                                {23, 84, 517},
                                {200, 49, 40},
                                {64, 10, 1024},
                                {130, 70, 8}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const float beta : {0.0f, 1.0f})
          expect_same_with_8_and_16_lanes([&, m = m, n = n, k = k] {
            const Gemm g{.trans_a = ta, .trans_b = tb, .m = m, .n = n, .k = k, .beta = beta};
            const auto a = numbers(m * k, 1), b = numbers(k * n, 2);
            auto c = numbers(m * n, 3);
            Buffer scratch(gemm_scratch(g));
            gemm(g, a.data(), ta ? m : k, b.data(), tb ? k : n, c.data(), n, scratch.data());
            if (!ta && tb) {
              const auto bias = numbers(n, 4);
              c.resize(static_cast<std::size_t>(2 * m * n));
              linear_forward({m, k, n}, a.data(), b.data(), bias.data(), c.data() + m * n, scratch.data());
            }
            return c;
          });
}

TEST(Gemm, EqualsTheReferenceAtSizesThatNeedBlocking) {
  check_transposes({.m = 131, .n = 70, .k = 1030}, 0);
  check_transposes({.m = 300, .n = 1100, .k = 67}, 3);
  check_transposes({.m = 1031, .n = 33, .k = 300}, 0);
  check_transposes({.m = 7, .n = 2100, .k = 600}, 1);
  check_transposes({.m = 65, .n = 129, .k = 257}, 0);
  check_transposes({.m = 128, .n = 256, .k = 512}, 0);
}

TEST(Gemm, ScalesByAlphaAndBeta) {
  for (const float alpha : {1.0f, -0.5f})
    for (const float beta : {0.0f, 1.0f, 0.25f}) {
      check_transposes({.m = 19, .n = 21, .k = 40, .alpha = alpha, .beta = beta}, 2);
      check_transposes({.m = 130, .n = 140, .k = 600, .alpha = alpha, .beta = beta}, 0);
    }
}

TEST(Gemm, AnEmptySumIsZeroOrBetaC) {
  check({.m = 5, .n = 7, .k = 0}, 0);
  check({.m = 5, .n = 7, .k = 0, .beta = 0.5f}, 0);
  check({.m = 0, .n = 7, .k = 3}, 0);
  check({.m = 5, .n = 0, .k = 3}, 0);
}

// The same bits wherever the operands lie: law 1 would break if alignment chose the order of the sums.
TEST(Gemm, DoesNotDependOnAddresses) {
  for (const std::int64_t size : {10, 33, 64, 150})
    for (const bool trans : {false, true}) {
      const Gemm g{.trans_a = trans, .trans_b = !trans, .m = size, .n = size + 1, .k = size + 5};
      const auto a = numbers(g.m * g.k, 1), b = numbers(g.k * g.n, 2);
      Buffer scratch(gemm_scratch(g));
      std::vector<float> first;
      for (const std::size_t shift : {0, 1, 3, 8}) {
        std::vector<float> a2(a.size() + shift), b2(b.size() + shift), c(g.m * g.n + shift);
        std::copy(a.begin(), a.end(), a2.begin() + shift), std::copy(b.begin(), b.end(), b2.begin() + shift);
        gemm(g, a2.data() + shift, trans ? g.m : g.k, b2.data() + shift, trans ? g.n : g.k, c.data() + shift, g.n,
             scratch.data());
        const std::vector<float> result(c.begin() + shift, c.end());
        if (first.empty()) first = result;
        EXPECT_EQ(first, result) << name(g) << " shifted by " << shift;
      }
    }
}

TEST(Linear, EqualsTheReference) {
  for (const LinearShape s :
       {LinearShape{1, 1, 1}, {3, 17, 5}, {64, 120, 84}, {64, 84, 10}, {33, 31, 129}, {200, 64, 64}}) {
    const std::string what = fmt::format("{} rows, {} -> {}", s.rows, s.in, s.out);
    const auto x = numbers(s.rows * s.in, 1), w = numbers(s.out * s.in, 2), bias = numbers(s.out, 3);
    Buffer scratch(linear_scratch(s));
    for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> y(s.rows * s.out), expected(y.size());
      linear_forward(s, x.data(), w.data(), b, y.data(), scratch.data());
      ref_linear_forward(s, x.data(), w.data(), b, expected.data());
      expect_elements_close(y, expected, 1e-5f, what + " y");
    }
  }
}

}  // namespace
}  // namespace echelon::kernels
