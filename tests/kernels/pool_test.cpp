// Pooling against its readable twin in every layout, ties and NaN as PyTorch treats them, and finite differences.
#include "kernels/pool.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/activation.h"

namespace echelon::kernels {
namespace {

using namespace test;

constexpr PoolKind kinds[] = {PoolKind::max, PoolKind::average, PoolKind::average_inside};

const PoolShape pool_shapes[] = {
    {.n = 1, .c = 1, .h = 1, .w = 1, .kh = 1, .kw = 1, .stride_h = 1, .stride_w = 1},
    {.n = 8, .c = 6, .h = 28, .w = 28},
    {.n = 3, .c = 8, .h = 7, .w = 9},                        // a rest is dropped
    {.n = 11, .c = 16, .h = 13, .w = 13, .kh = 3, .kw = 3},  // overlapping
    {.n = 2, .c = 8, .h = 9, .w = 9, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 5, .c = 24, .h = 8, .w = 5, .kh = 3, .kw = 2, .stride_h = 1, .stride_w = 3, .pad_h = 1, .pad_w = 1},
    {.n = 2, .c = 16, .h = 4, .w = 4, .kh = 4, .kw = 4, .stride_h = 1, .stride_w = 1},     // global
    {.n = 2, .c = 8, .h = 18, .w = 17, .kh = 18, .kw = 17, .stride_h = 1, .stride_w = 1},  // more than a byte holds
    {.n = 2, .c = 8, .h = 11, .w = 7, .kh = 2, .kw = 2, .stride_h = 3, .stride_w = 3},     // gaps
};

template <typename Check>
void for_each_pool(Check check) {
  for (const PoolShape& s : pool_shapes)
    for (const PoolKind kind : kinds)
      for (const Layout layout : all_layouts) {
        if (!fits(s.in_shape(), layout)) continue;
        SCOPED_TRACE(fmt::format("{} kernel {}x{} stride {} pad {} kind {} {}", to_string(s.in_shape()), s.kh, s.kw,
                                 s.stride_h, s.pad_h, static_cast<int>(kind), name_of(layout)));
        check(s, kind, layout);
      }
}

// Memory for the places of the maxima.
std::size_t index_bytes(const PoolShape& s, PoolKind kind, Layout layout) {
  if (kind != PoolKind::max) return 0;
  return static_cast<std::size_t>(stored_elements(s.out_shape(), layout)) * size_of(pool_index_type(s));
}

// Values with many ties, so that the first maximum has to be told from the others.
std::vector<float> coarse(std::int64_t count, std::uint64_t seed) {
  auto values = random_values(count, seed);
  for (float& v : values) v = std::round(2 * v) / 2;
  return values;
}

TEST(Pool, forward_and_backward_equal_their_twins) {
  for_each_pool([](const PoolShape& s, PoolKind kind, Layout layout) {
    const auto x = coarse(s.in_shape().elements(), 1), dy = random_values(s.out_shape().elements(), 2);
    std::vector<float> expected_y(size(s.out_shape())), expected_dx(size(s.in_shape()));
    ref_pool_forward(s, kind, x.data(), expected_y.data());
    ref_pool_backward(s, kind, x.data(), dy.data(), expected_dx.data());
    Activation in(s.in_shape(), layout, x), out(s.out_shape(), layout), d_out(s.out_shape(), layout, dy),
        d_in(s.in_shape(), layout);
    Buffer indices(index_bytes(s, kind, layout));
    pool_forward(s, kind, layout, in.data(), out.data(), indices.bytes() ? indices.data() : nullptr);
    expect_close(out.plain(), expected_y, 1e-6f);
    pool_backward(s, kind, layout, d_out.data(), indices.data(), d_in.data());
    expect_close(d_in.plain(), expected_dx, 1e-6f);
    Activation again(s.out_shape(), layout);
    pool_forward(s, kind, layout, in.data(), again.data(), nullptr);  // evaluation keeps no indices
    EXPECT_EQ(again.plain(), out.plain());
  });
}

TEST(Pool, max_takes_the_first_of_equals_and_passes_nan_on) {
  const PoolShape s{.n = 1, .c = 1, .h = 2, .w = 4};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{1, 1, 5, nan, 1, 1, 7, 2}, dy{10, 20};
  std::vector<float> y(2), dx(8);
  Buffer indices(index_bytes(s, PoolKind::max, Layout::plain));
  pool_forward(s, PoolKind::max, Layout::plain, x.data(), y.data(), indices.data());
  EXPECT_EQ(y[0], 1);
  EXPECT_TRUE(std::isnan(y[1]));
  pool_backward(s, PoolKind::max, Layout::plain, dy.data(), indices.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{10, 0, 0, 20, 0, 0, 0, 0}));
}

TEST(Pool, max_of_negative_values_beside_padding_is_negative) {
  const PoolShape s{
      .n = 1, .c = 1, .h = 2, .w = 2, .kh = 3, .kw = 3, .stride_h = 1, .stride_w = 1, .pad_h = 1, .pad_w = 1};
  const std::vector<float> x{-4, -3, -2, -1};
  std::vector<float> y(4);
  pool_forward(s, PoolKind::max, Layout::plain, x.data(), y.data(), nullptr);
  EXPECT_EQ(y, (std::vector<float>{-1, -1, -1, -1}));
}

TEST(Pool, twins_agree_with_finite_differences) {
  const PoolShape s{
      .n = 1, .c = 2, .h = 5, .w = 4, .kh = 3, .kw = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1};
  for (const PoolKind kind : kinds) {
    auto x = random_values(s.in_shape().elements(), 3);
    const auto r = random_values(s.out_shape().elements(), 4);
    const auto loss = [&] {
      std::vector<float> y(r.size());
      ref_pool_forward(s, kind, x.data(), y.data());
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * r[i];
      return sum;
    };
    std::vector<float> dx(x.size());
    ref_pool_backward(s, kind, x.data(), r.data(), dx.data());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope(x[i], loss, 1e-3f), dx[i], 2e-3) << i;
  }
}

TEST(Pool, impossible_shapes_are_named) {
  EXPECT_EQ(problem_with(PoolShape{.n = 1, .c = 1, .h = 2, .w = 2, .kh = 3, .kw = 3}),
            "the kernel 3x3 is larger than the image 2x2 with padding 0x0");
  EXPECT_EQ(problem_with(PoolShape{.n = 1, .c = 1, .h = 8, .w = 8, .pad_h = 2, .pad_w = 0}),
            "padding 2x0 must be between 0 and half of the kernel 2x2");
  for (const PoolShape& s : pool_shapes) EXPECT_EQ(problem_with(s), "");
}

}  // namespace
}  // namespace echelon::kernels
