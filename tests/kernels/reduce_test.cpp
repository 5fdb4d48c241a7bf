#include "kernels/reduce.h"

#include <limits>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(Reduce, SumsHaveTheReferencesBitsOnEveryTarget) {
  std::vector<std::size_t> sizes = odd_sizes;
  sizes.insert(sizes.end(), {4095, 4096, 8192, 8191, 100003});
  on_every_target([&] {
    for (const std::size_t n : sizes) {
      const Fenced x = fenced_values(n, 1), y = fenced_values(n, 2);
      EXPECT_EQ(sum(x.data(), n), ref_sum(x.data(), n)) << n;
      EXPECT_EQ(dot(x.data(), y.data(), n), ref_dot(x.data(), y.data(), n)) << n;
      EXPECT_EQ(squared_norm(x.data(), n), ref_squared_norm(x.data(), n)) << n;
      EXPECT_EQ(max_abs(x.data(), n), ref_max_abs(x.data(), n)) << n;
    }
  });
}

TEST(Reduce, SumsAreCloseToTheTruth) {
  const std::size_t n = 1000003;
  const Fenced x = fenced_values(n, 1, 0, 1);
  double total = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) total += x[i], squares += static_cast<double>(x[i]) * x[i];
  EXPECT_NEAR(sum(x.data(), n) / total, 1, 1e-8);
  EXPECT_NEAR(squared_norm(x.data(), n) / squares, 1, 1e-7);
}

TEST(Reduce, NonFiniteValuesAreFoundWhereverTheyAre) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  on_every_target([&] {
    for (const std::size_t n : std::vector<std::size_t>{1, 9, 33, 130})
      for (std::size_t at = 0; at < n; ++at) {
        Fenced x = fenced_values(n, 1);
        x[at] = -infinity;
        EXPECT_EQ(max_abs(x.data(), n), infinity);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_TRUE(std::isnan(max_abs(x.data(), n)));
        EXPECT_TRUE(std::isnan(ref_max_abs(x.data(), n)));
      }
  });
}

TEST(Reduce, ColumnSumAndRowBiasGiveTheReferencesBits) {
  on_every_target([] {
    for (const std::size_t rows : std::vector<std::size_t>{0, 1, 2, 7, 8, 9, 16, 31, 65})
      for (const std::size_t cols : std::vector<std::size_t>{1, 3, 7, 8, 9, 31, 32, 33, 65, 130}) {
        const Fenced x = fenced_values(rows * cols, 1), bias = fenced_values(cols, 2);
        Fenced got(cols), want(cols, 7);
        column_sum(x.data(), rows, cols, got.data());
        ref_column_sum(x.data(), rows, cols, want.data());
        expect_same(got, want);
        for (const bool relu : {false, true}) {
          Fenced y = x, z = x;
          add_row_bias(y.data(), bias.data(), rows, cols, relu);
          ref_add_row_bias(z.data(), bias.data(), rows, cols, relu);
          expect_same(y, z);
        }
      }
  });
}

TEST(Reduce, ChannelsInEveryLayout) {
  on_every_target([] {
    for (const Layout layout : {Layout::plain, Layout::channel8, Layout::batch8})
      for (const std::size_t n : std::vector<std::size_t>{1, 3, 8, 11})
        for (const std::size_t c : std::vector<std::size_t>{1, 3, 8, 16}) {
          if (layout == Layout::channel8 && c % 8 != 0) continue;
          for (const auto& [h, w] : std::vector<std::pair<std::size_t, std::size_t>>{{1, 1}, {3, 5}, {7, 9}}) {
            SCOPED_TRACE(std::string(name_of(layout)) + " n=" + std::to_string(n) + " c=" + std::to_string(c));
            const ImageExtents e{n, c, h, w};
            const std::size_t stored = (layout == Layout::batch8 ? (n + 7) / 8 * 8 : n) * c * h * w;
            const Fenced x = fenced_values(stored, 1), bias = fenced_values(c, 2);
            Fenced got(c), want(c);
            channel_sum(x.data(), layout, e, got.data());
            ref_channel_sum(x.data(), layout, e, want.data());
            expect_close(got, want, 1e-6, 1e-5);
            if (layout != Layout::plain) continue;
            Fenced y = x, z = x;
            add_channel_bias(y.data(), e, bias.data());
            ref_add_channel_bias(z.data(), e, bias.data());
            expect_same(y, z);
          }
        }
  });
}

// In batch8 a garbage lane must not leak into a sum.
TEST(Reduce, UnusedLanesDoNotCount) {
  const ImageExtents e{5, 2, 3, 3};
  Fenced x(8 * 2 * 9, 1);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i % 8 >= 5) x[i] = 1e30f;
  float out[2];
  channel_sum(x.data(), Layout::batch8, e, out);
  EXPECT_EQ(out[0], 45);
  EXPECT_EQ(out[1], 45);
}

}  // namespace
}  // namespace echelon::kernels
