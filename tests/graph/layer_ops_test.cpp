// The ops behind the layers of recipes: values against plain loops, gradients against central differences.
#include <gtest/gtest.h>

#include "graph/ops/attention.h"
#include "graph/ops/batch_matmul.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/conv.h"
#include "graph/ops/group_norm.h"
#include "graph/ops/permute.h"
#include "graph/ops/shape.h"
#include "graph/ops/softmax.h"
#include "graph/ops/unshared_conv.h"
#include "tests/graph/op_check.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using test::check_gradient;
using test::OpRun;
using ParameterValues = std::vector<Value>;

TEST(LayerOps, GroupNorm) {
  for (const Shape& shape : {Shape{2, 6, 3, 5}, Shape{3, 6, 4}, Shape{4, 6}})
    for (int groups : {1, 3})
      check_gradient({{shape}, {{6}, 0.3f, 1}, {{6}}}, [&](Graph& g, const ParameterValues& p) {
        return ops::group_norm(g, p[0], p[1], p[2], groups, 1e-2f);
      });
}

TEST(LayerOps, LocallyConnected) {
  const ops::UnsharedConv2d p{.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .pad_h = 1};
  const Shape x{2, 3, 5, 4}, w = ops::unshared_weights(x, 4, p);
  EXPECT_EQ(w, (Shape{3, 3, 4, 18}));
  check_gradient({{x}, {w}, {{3, 3, 4}}},
                 [&](Graph& g, const ParameterValues& v) { return ops::unshared_conv2d(g, v[0], v[1], v[2], p); });
  check_gradient({{x}, {w}},
                 [&](Graph& g, const ParameterValues& v) { return ops::unshared_conv2d(g, v[0], v[1], {}, p); });
  EXPECT_THROW(ops::unshared_weights({2, 3, 5}, 4, p), BadInput);
  EXPECT_THROW(ops::unshared_weights({2, 3, 1, 1}, 4, {.kernel_h = 9}), BadInput);
}

TEST(LayerOps, ScaleRowsAndAddChannels) {
  for (const Shape& gate : {Shape{2, 3}, Shape{2}, Shape{2, 3, 4, 5}})
    check_gradient({{{2, 3, 4, 5}}, {gate}},
                   [](Graph& g, const ParameterValues& p) { return ops::scale_rows(g, p[0], p[1]); });
  check_gradient({{{2, 3, 4, 5}}, {{3}}},
                 [](Graph& g, const ParameterValues& p) { return ops::add_channels(g, p[0], p[1]); });
  Graph g;
  const Value x = g.input("x", f32({2, 3, 4})), s = g.input("s", f32({2, 4}));
  EXPECT_THROW(ops::scale_rows(g, x, s), BadInput);
}

TEST(LayerOps, TransposeAndReverse) {
  check_gradient({{{3, 5, 7}}}, [](Graph& g, const ParameterValues& p) { return ops::transpose(g, p[0]); });
  for (int axis : {0, 1, 2})
    check_gradient({{{3, 5, 7}}}, [&](Graph& g, const ParameterValues& p) { return ops::reverse(g, p[0], axis); });
  OpRun run({{{2, 3, 2}}}, [](Graph& g, const ParameterValues& p) { return ops::reverse(g, p[0], 1); });
  run.run();
  const auto x = run.parameter(0);
  const auto y = run.output();
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(y[(b * 3 + t) * 2 + i], x[(b * 3 + 2 - t) * 2 + i]);
}

TEST(LayerOps, Permute) {
  for (const std::vector<int>& axes : {std::vector<int>{0, 2, 1, 3}, {3, 0, 2, 1}, {0, 1, 2, 3}})
    check_gradient({{{2, 3, 4, 5}}}, [&](Graph& g, const ParameterValues& p) { return ops::permute(g, p[0], axes); });
  OpRun run({{{2, 3, 4}}}, [](Graph& g, const ParameterValues& p) { return ops::permute(g, p[0], {2, 0, 1}); });
  run.run();
  const auto x = run.parameter(0);
  const auto y = run.output();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(y[(k * 2 + i) * 3 + j], x[(i * 3 + j) * 4 + k]);
}

TEST(LayerOps, BatchMatmul) {
  constexpr std::int64_t m = 3, k = 5, n = 4;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const std::vector<test::Given> given{{ta ? Shape{2, k, m} : Shape{2, m, k}},
                                           {tb ? Shape{2, n, k} : Shape{2, k, n}}};
      const auto build = [&](Graph& g, const ParameterValues& p) { return ops::batch_matmul(g, p[0], p[1], ta, tb); };
      check_gradient(given, build);
      OpRun run(given, build);
      run.run();
      const auto a = run.parameter(0), b = run.parameter(1);
      const auto y = run.output();
      for (std::size_t h = 0; h < 2; ++h)
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t l = 0; l < k; ++l)
              sum += static_cast<double>(a[h * m * k + (ta ? l * m + i : i * k + l)]) *
                     static_cast<double>(b[h * k * n + (tb ? j * k + l : l * n + j)]);
            EXPECT_NEAR(y[(h * m + i) * n + j], sum, 1e-5);
          }
    }
}

TEST(LayerOps, CausalMask) {
  const auto build = [](Graph& g, const ParameterValues& p) { return ops::softmax(g, ops::causal_mask(g, p[0])); };
  check_gradient({{{2, 4, 4}}}, build);
  OpRun run({{{2, 4, 4}}}, build);
  run.run();
  const auto y = run.output();
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t q = 0; q < 4; ++q) {
      float sum = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(y[(h * 4 + q) * 4 + k] == 0, k > q);
        sum += y[(h * 4 + q) * 4 + k];
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
}

TEST(LayerOps, CrossAttention) {
  for (std::int64_t queries : {1, 5})
    for (std::int64_t keys : {1, 4, 9})
      check_gradient({{{2, queries, 8}}, {{2, keys, 16}}},
                     [](Graph& g, const ParameterValues& p) { return ops::cross_attention(g, p[0], p[1], 2); });
}

// With the same sequence on both sides it is self-attention.
TEST(LayerOps, CrossAttentionOnItselfIsSelfAttention) {
  const auto self = [](Graph& g, const ParameterValues& p) { return ops::attention(g, p[0], 2, false); };
  const auto cross = [](Graph& g, const ParameterValues& p) {
    return ops::cross_attention(g, ops::slice(g, p[0], 2, 0, 8), ops::slice(g, p[0], 2, 8, 24), 2);
  };
  OpRun a({{{2, 6, 24}}}, self), b({{{2, 6, 24}}}, cross);
  EXPECT_NEAR(a.run(), b.run(), 1e-5);
  EXPECT_EQ(a.output(), b.output());
}

// The definition: every input pixel adds its kernel, times itself, to a window of the output.
TEST(LayerOps, TransposedConvolutionAddsKernels) {
  struct Case {
    ops::Conv2d p;
    int more;
    std::int64_t kernel;
  };
  for (const Case& c : {Case{{.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}, 1, 3}, Case{{}, 0, 3},
                        Case{{.stride_h = 2, .stride_w = 2}, 0, 2},
                        Case{{.stride_h = 3, .stride_w = 3, .dilation_h = 2, .dilation_w = 2, .groups = 2}, 0, 3}}) {
    const std::int64_t n = 2, in = 4, out = 6, h = 3, w = 5, k = c.kernel, group_in = in / c.p.groups,
                       group_out = out / c.p.groups;
    const auto build = [&](Graph& g, const ParameterValues& p) {
      return ops::conv_transpose2d(g, p[0], p[1], p[2], c.p, c.more, c.more);
    };
    const std::vector<test::Given> given{{{n, in, h, w}}, {{in, group_out, k, k}, 0.3f}, {{out}}};
    check_gradient(given, build);
    OpRun run(given, build);
    run.run();
    const std::int64_t big_h = (h - 1) * c.p.stride_h - 2 * c.p.pad_h + c.p.dilation_h * (k - 1) + 1 + c.more;
    const std::int64_t big_w = (w - 1) * c.p.stride_w - 2 * c.p.pad_w + c.p.dilation_w * (k - 1) + 1 + c.more;
    std::vector<double> want(static_cast<std::size_t>(n * out * big_h * big_w));
    const auto x = run.parameter(0), weights = run.parameter(1), bias = run.parameter(2);
    for (std::int64_t b = 0; b < n; ++b)
      for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t y = 0; y < big_h * big_w; ++y)
          want[static_cast<std::size_t>((b * out + o) * big_h * big_w + y)] = bias[static_cast<std::size_t>(o)];
        const std::int64_t group = o / group_out;
        for (std::int64_t i = group * group_in; i < (group + 1) * group_in; ++i)
          for (std::int64_t y = 0; y < h; ++y)
            for (std::int64_t z = 0; z < w; ++z)
              for (std::int64_t ky = 0; ky < k; ++ky)
                for (std::int64_t kz = 0; kz < k; ++kz) {
                  const std::int64_t to_y = y * c.p.stride_h - c.p.pad_h + ky * c.p.dilation_h;
                  const std::int64_t to_z = z * c.p.stride_w - c.p.pad_w + kz * c.p.dilation_w;
                  if (to_y < 0 || to_y >= big_h || to_z < 0 || to_z >= big_w) continue;
                  want[static_cast<std::size_t>(((b * out + o) * big_h + to_y) * big_w + to_z)] +=
                      x[static_cast<std::size_t>(((b * in + i) * h + y) * w + z)] *
                      weights[static_cast<std::size_t>(((i * group_out + o % group_out) * k + ky) * k + kz)];
                }
      }
    const auto found = run.output();
    ASSERT_EQ(found.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(found[i], want[i], 1e-4) << i;
  }
}

TEST(LayerOps, TransposedConvolutionRefusesWhatDoesNotFit) {
  Graph g;
  const Value x = g.input("x", f32({2, 4, 3, 3})), w = g.input("w", f32({4, 2, 3, 3})),
              v = g.input("v", f32({5, 2, 3, 3}));
  EXPECT_THROW(ops::conv_transpose2d(g, x, v, {}, {}), BadInput);
  EXPECT_THROW(ops::conv_transpose2d(g, x, w, {}, {.pad_h = 4, .pad_w = 4}), BadInput);
  EXPECT_THROW(ops::conv_transpose2d(g, x, w, {}, {}, 1, 1), BadInput);
  EXPECT_THROW(ops::conv_transpose2d(g, x, w, {}, {.stride_h = 0}), BadInput);
}

}  // namespace
}  // namespace echelon
