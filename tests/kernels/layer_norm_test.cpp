#include "kernels/norm/layer_norm.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(LayerNorm, EqualsItsReference) {
  on_every_target([] {
    for (const std::size_t cols : std::vector<std::size_t>{1, 2, 3, 7, 8, 9, 17, 31, 64, 65, 127, 1000, 5003})
      for (const std::size_t rows : std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 9})
        for (const bool affine : {true, false}) {
          SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
          const Fenced x = fenced_values(rows * cols, 1, -2, 5), dy = fenced_values(rows * cols, 2);
          const Fenced gamma = fenced_values(cols, 3), beta = fenced_values(cols, 4);
          const float *g = affine ? gamma.data() : nullptr, *b = affine ? beta.data() : nullptr;
          const float eps = 1e-3f;  // rows of one or two columns have little variance
          Fenced y(x.size()), mean(rows), rstd(rows), want_y(x.size()), want_mean(rows), want_rstd(rows);
          layer_norm(x.data(), g, b, eps, y.data(), mean.data(), rstd.data(), rows, cols);
          ref_layer_norm(x.data(), g, b, eps, want_y.data(), want_mean.data(), want_rstd.data(), rows, cols);
          expect_close(mean, want_mean, 1e-6, 1e-6);
          expect_close(rstd, want_rstd, 3e-6);
          expect_close(y, want_y, 1e-5, 1e-5);
          layer_norm(x.data(), g, b, eps, y.data(), nullptr, nullptr, rows, cols);

          Fenced dx(x.size()), dgamma(cols, 7), dbeta(cols, 7), want_dx(x.size()), want_dgamma(cols), want_dbeta(cols);
          layer_norm_grad(x.data(), g, mean.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(),
                          rows, cols);
          ref_layer_norm_grad(x.data(), g, mean.data(), rstd.data(), dy.data(), want_dx.data(), want_dgamma.data(),
                              want_dbeta.data(), rows, cols);
          expect_close(dx, want_dx, 2e-5, 2e-4);
          expect_close(dgamma, want_dgamma, 1e-5, 1e-5);
          expect_close(dbeta, want_dbeta, 1e-5, 1e-5);

          Fenced in_place = dy, params(cols), more(cols);
          layer_norm_grad(x.data(), g, mean.data(), rstd.data(), in_place.data(), in_place.data(), params.data(),
                          more.data(), rows, cols);
          expect_same(in_place, dx);
          expect_same(params, dgamma);
          layer_norm_grad(x.data(), g, mean.data(), rstd.data(), dy.data(), nullptr, params.data(), more.data(), rows,
                          cols);
          expect_same(more, dbeta);
        }
  });
}

TEST(LayerNorm, GradientsAgreeWithFiniteDifferences) {
  const std::size_t rows = 3, cols = 5;
  const float eps = 1e-5f;
  const Fenced x = fenced_values(rows * cols, 1), gamma = fenced_values(cols, 2), beta = fenced_values(cols, 3);
  const Fenced dy = fenced_values(rows * cols, 4);
  using Numbers = std::vector<double>;
  const auto objective = [&](const Numbers& v, const Numbers& g, const Numbers& b) {
    double total = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (std::size_t c = 0; c < cols; ++c) mean += v[r * cols + c] / cols;
      for (std::size_t c = 0; c < cols; ++c) variance += std::pow(v[r * cols + c] - mean, 2) / cols;
      for (std::size_t c = 0; c < cols; ++c)
        total += dy[r * cols + c] * ((v[r * cols + c] - mean) / std::sqrt(variance + eps) * g[c] + b[c]);
    }
    return total;
  };
  const Numbers v(x.data(), x.data() + rows * cols), g(gamma.data(), gamma.data() + cols),
      b(beta.data(), beta.data() + cols);
  Fenced y(rows * cols), mean(rows), rstd(rows), dx(rows * cols), dgamma(cols), dbeta(cols);
  layer_norm(x.data(), gamma.data(), beta.data(), eps, y.data(), mean.data(), rstd.data(), rows, cols);
  layer_norm_grad(x.data(), gamma.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(), dbeta.data(),
                  rows, cols);
  const double h = 1e-5;
  const auto moved = [](Numbers n, std::size_t i, double by) {
    n[i] += by;
    return n;
  };
  for (std::size_t i = 0; i < rows * cols; ++i)
    EXPECT_NEAR(dx[i], (objective(moved(v, i, h), g, b) - objective(moved(v, i, -h), g, b)) / (2 * h), 2e-5);
  for (std::size_t i = 0; i < cols; ++i) {
    EXPECT_NEAR(dgamma[i], (objective(v, moved(g, i, h), b) - objective(v, moved(g, i, -h), b)) / (2 * h), 2e-5);
    EXPECT_NEAR(dbeta[i], (objective(v, g, moved(b, i, h)) - objective(v, g, moved(b, i, -h))) / (2 * h), 2e-5);
  }
}

}  // namespace
}  // namespace echelon::kernels
