// Batch normalisation against its readable twin in every layout and fusion, accuracy far from zero, idle lanes, and
// finite differences.
#include "kernels/norm/batch_norm.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/activation.h"

namespace echelon::kernels {
namespace {

using namespace test;

const Shape norm_shapes[] = {{2, 1, 1, 1}, {8, 8, 5, 5},   {3, 16, 7, 3}, {13, 5, 4, 4},
                             {9, 3, 1, 1}, {2, 24, 33, 1}, {64, 8, 1, 1}, {1, 8, 40, 40}};

struct Channels {
  std::vector<float> gamma, beta, mean, rstd, variance, dgamma, dbeta;
  explicit Channels(std::int64_t c) {
    gamma = random_values(c, 91);
    beta = random_values(c, 92);
    for (auto* v : {&mean, &rstd, &variance, &dgamma, &dbeta}) v->resize(static_cast<std::size_t>(c));
  }
};

template <typename Check>
void for_each_norm(Check check) {
  for (const Shape& s : norm_shapes)
    for (const Layout layout : all_layouts)
      for (const bool relu : {false, true})
        for (const bool residual : {false, true}) {
          if (!fits(s, layout)) continue;
          SCOPED_TRACE(fmt::format("{} {}{}{}", to_string(s), name_of(layout), relu ? " relu" : "",
                                   residual ? " residual" : ""));
          check(s, layout, relu, residual);
        }
}

TEST(BatchNorm, forward_equals_its_twin) {
  for_each_norm([](const Shape& s, Layout layout, bool relu, bool with_residual) {
    const BatchNormShape shape{s[0], s[1], s[2] * s[3]};
    const auto x = random_values(s.elements(), 1), residual = random_values(s.elements(), 2);
    Channels expected(s[1]), actual(s[1]);
    std::vector<float> y(x.size());
    ref_batch_norm_forward(shape, {.x = x.data(),
                                   .gamma = expected.gamma.data(),
                                   .beta = expected.beta.data(),
                                   .residual = with_residual ? residual.data() : nullptr,
                                   .relu = relu,
                                   .y = y.data(),
                                   .mean = expected.mean.data(),
                                   .rstd = expected.rstd.data(),
                                   .variance = expected.variance.data()});
    Activation in(s, layout, x), add(s, layout, residual), out(s, layout);
    batch_norm_forward(shape, layout,
                       {.x = in.data(),
                        .gamma = actual.gamma.data(),
                        .beta = actual.beta.data(),
                        .residual = with_residual ? add.data() : nullptr,
                        .relu = relu,
                        .y = out.data(),
                        .mean = actual.mean.data(),
                        .rstd = actual.rstd.data(),
                        .variance = actual.variance.data()});
    expect_close(out.plain(), y, 1e-5f);
    expect_close(actual.mean, expected.mean, 1e-5f);
    expect_close(actual.rstd, expected.rstd, 1e-5f);
    expect_close(actual.variance, expected.variance, 1e-5f);
  });
}

TEST(BatchNorm, inference_equals_its_twin) {
  for_each_norm([](const Shape& s, Layout layout, bool relu, bool with_residual) {
    const BatchNormShape shape{s[0], s[1], s[2] * s[3]};
    const auto x = random_values(s.elements(), 1), residual = random_values(s.elements(), 2);
    Channels c(s[1]);
    c.mean = random_values(s[1], 3);
    for (std::size_t i = 0; i < c.variance.size(); ++i) c.variance[i] = 0.5f + static_cast<float>(i % 3);
    std::vector<float> y(x.size());
    BatchNormInference args{.x = x.data(),
                            .gamma = c.gamma.data(),
                            .beta = c.beta.data(),
                            .mean = c.mean.data(),
                            .variance = c.variance.data(),
                            .residual = with_residual ? residual.data() : nullptr,
                            .relu = relu,
                            .y = y.data()};
    ref_batch_norm_inference(shape, args);
    Activation in(s, layout, x), add(s, layout, residual);
    args.x = args.y = in.data();  // in place
    args.residual = with_residual ? add.data() : nullptr;
    batch_norm_inference(shape, layout, args);
    expect_close(in.plain(), y, 1e-5f);
  });
}

TEST(BatchNorm, backward_equals_its_twin) {
  for_each_norm([](const Shape& s, Layout layout, bool relu, bool with_residual) {
    const BatchNormShape shape{s[0], s[1], s[2] * s[3]};
    const auto x = random_values(s.elements(), 1), residual = random_values(s.elements(), 2),
               dy = random_values(s.elements(), 3);
    Channels c(s[1]);
    std::vector<float> y(x.size()), dx(x.size()), d_residual(x.size());
    ref_batch_norm_forward(shape, {.x = x.data(),
                                   .gamma = c.gamma.data(),
                                   .beta = c.beta.data(),
                                   .residual = with_residual ? residual.data() : nullptr,
                                   .relu = relu,
                                   .y = y.data(),
                                   .mean = c.mean.data(),
                                   .rstd = c.rstd.data()});
    ref_batch_norm_backward(shape, {.x = x.data(),
                                    .gamma = c.gamma.data(),
                                    .beta = c.beta.data(),
                                    .mean = c.mean.data(),
                                    .rstd = c.rstd.data(),
                                    .dy = dy.data(),
                                    .relu = relu,
                                    .y = y.data(),
                                    .dx = dx.data(),
                                    .dgamma = c.dgamma.data(),
                                    .dbeta = c.dbeta.data(),
                                    .d_residual = d_residual.data()});
    Activation in(s, layout, x), out(s, layout, y), d_out(s, layout, dy), d_in(s, layout), d_add(s, layout);
    Channels actual(s[1]);
    batch_norm_backward(shape, layout,
                        {.x = in.data(),
                         .gamma = c.gamma.data(),
                         .beta = c.beta.data(),
                         .mean = c.mean.data(),
                         .rstd = c.rstd.data(),
                         .dy = d_out.data(),
                         .relu = relu,
                         .y = with_residual ? out.data() : nullptr,
                         .dx = d_in.data(),
                         .dgamma = actual.dgamma.data(),
                         .dbeta = actual.dbeta.data(),
                         .d_residual = with_residual ? d_add.data() : nullptr});
    expect_close(actual.dgamma, c.dgamma, 1e-5f);
    expect_close(actual.dbeta, c.dbeta, 1e-5f);
    expect_close(d_in.plain(), dx, 2e-5f, 1.0f);
    if (with_residual) expect_close(d_add.plain(), d_residual, 0.0f);
  });
}

TEST(BatchNorm, variance_is_accurate_far_from_zero) {
  const Shape s{16, 8, 12, 12};
  auto x = random_values(s.elements(), 5);
  for (float& v : x) v += 1000.0f;
  for (const Layout layout : all_layouts) {
    Channels expected(8), actual(8);
    std::vector<float> y(x.size());
    Activation in(s, layout, x), out(s, layout);
    const BatchNormShape shape{s[0], s[1], s[2] * s[3]};
    ref_batch_norm_forward(shape, {.x = x.data(),
                                   .gamma = expected.gamma.data(),
                                   .beta = expected.beta.data(),
                                   .y = y.data(),
                                   .mean = expected.mean.data(),
                                   .rstd = expected.rstd.data()});
    batch_norm_forward(shape, layout,
                       {.x = in.data(),
                        .gamma = actual.gamma.data(),
                        .beta = actual.beta.data(),
                        .y = out.data(),
                        .mean = actual.mean.data(),
                        .rstd = actual.rstd.data()});
    expect_close(actual.rstd, expected.rstd, 1e-5f);
    expect_close(out.plain(), y, 1e-4f);
  }
}

TEST(BatchNorm, idle_lanes_of_batch8_do_not_count) {
  const Shape s{11, 3, 4, 5};
  const BatchNormShape shape{s[0], s[1], s[2] * s[3]};
  const auto x = random_values(s.elements(), 6), dy = random_values(s.elements(), 7);
  const auto run = [&](float garbage) {
    Channels c(s[1]);
    Activation in(s, Layout::batch8, x, garbage), out(s, Layout::batch8), d_out(s, Layout::batch8, dy, garbage),
        d_in(s, Layout::batch8);
    batch_norm_forward(shape, Layout::batch8,
                       {.x = in.data(),
                        .gamma = c.gamma.data(),
                        .beta = c.beta.data(),
                        .relu = true,
                        .y = out.data(),
                        .mean = c.mean.data(),
                        .rstd = c.rstd.data()});
    batch_norm_backward(shape, Layout::batch8,
                        {.x = in.data(),
                         .gamma = c.gamma.data(),
                         .beta = c.beta.data(),
                         .mean = c.mean.data(),
                         .rstd = c.rstd.data(),
                         .dy = d_out.data(),
                         .relu = true,
                         .dx = d_in.data(),
                         .dgamma = c.dgamma.data(),
                         .dbeta = c.dbeta.data()});
    return std::tuple(c.mean, c.rstd, c.dgamma, c.dbeta, out.plain(), d_in.plain());
  };
  EXPECT_EQ(run(0.0f), run(std::numeric_limits<float>::infinity()));
}

TEST(BatchNorm, twin_agrees_with_finite_differences) {
  const BatchNormShape shape{3, 2, 4};
  auto x = random_values(24, 8), residual = random_values(24, 9);
  const auto r = random_values(24, 10);
  Channels c(2);
  std::vector<float> y(24), dx(24), d_residual(24);
  const auto forward = [&] {
    ref_batch_norm_forward(shape, {.x = x.data(),
                                   .gamma = c.gamma.data(),
                                   .beta = c.beta.data(),
                                   .residual = residual.data(),
                                   .relu = true,
                                   .y = y.data(),
                                   .mean = c.mean.data(),
                                   .rstd = c.rstd.data()});
  };
  const auto loss = [&] {
    forward();
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * r[i];
    return sum;
  };
  forward();
  ref_batch_norm_backward(shape, {.x = x.data(),
                                  .gamma = c.gamma.data(),
                                  .beta = c.beta.data(),
                                  .mean = c.mean.data(),
                                  .rstd = c.rstd.data(),
                                  .dy = r.data(),
                                  .relu = true,
                                  .y = y.data(),
                                  .dx = dx.data(),
                                  .dgamma = c.dgamma.data(),
                                  .dbeta = c.dbeta.data(),
                                  .d_residual = d_residual.data()});
  const auto check = [&](std::vector<float>& values, const std::vector<float>& gradient) {
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(slope(values[i], loss, 1e-3f), gradient[i], 5e-3) << i;
  };
  check(x, dx);
  check(residual, d_residual);
  check(c.gamma, c.dgamma);
  check(c.beta, c.dbeta);
}

}  // namespace
}  // namespace echelon::kernels
