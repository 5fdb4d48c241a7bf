#include "kernels/softmax.h"

#include <limits>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

const std::vector<std::size_t> widths = {1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 64, 65, 127, 1000, 1023, 5000};

TEST(Softmax, EqualsItsReference) {
  on_every_target([] {
    for (const std::size_t cols : widths)
      for (const std::size_t rows : std::vector<std::size_t>{0, 1, 3}) {
        const Fenced x = fenced_values(rows * cols, 1, -8, 8), dy = fenced_values(rows * cols, 2);
        Fenced y(x.size()), want(x.size()), dx(x.size()), want_dx(x.size());
        softmax(x.data(), y.data(), rows, cols);
        ref_softmax(x.data(), want.data(), rows, cols);
        expect_close(y, want, 2e-6);
        softmax_grad(y.data(), dy.data(), dx.data(), rows, cols);
        ref_softmax_grad(want.data(), dy.data(), want_dx.data(), rows, cols);
        expect_close(dx, want_dx, 1e-5, 1e-7);
      }
  });
}

TEST(Softmax, GradientsAgreeWithFiniteDifferences) {
  const std::size_t cols = 7;
  const Fenced x = fenced_values(cols, 1), dy = fenced_values(cols, 2);
  // sum over c of dy[c] * softmax(x)[c], in double through the definition
  const auto objective = [&](const std::vector<double>& v) {
    double total = 0, result = 0;
    for (const double e : v) total += std::exp(e);
    for (std::size_t c = 0; c < cols; ++c) result += dy[c] * std::exp(v[c]) / total;
    return result;
  };
  Fenced y(cols), dx(cols);
  softmax(x.data(), y.data(), 1, cols);
  softmax_grad(y.data(), dy.data(), dx.data(), 1, cols);
  for (std::size_t c = 0; c < cols; ++c) {
    std::vector<double> up(x.data(), x.data() + cols), down = up;
    up[c] += 1e-5;
    down[c] -= 1e-5;
    EXPECT_NEAR(dx[c], (objective(up) - objective(down)) / 2e-5, 1e-6);
  }
}

TEST(Softmax, ExtremesAndMasks) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  on_every_target([&] {
    for (const std::size_t n : std::vector<std::size_t>{3, 9, 40}) {
      Fenced x(n, -infinity), y(n);
      x[n - 1] = 3e38f;
      x[1] = 3e38f;
      softmax(x.data(), y.data(), 1, n);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], i == 1 || i == n - 1 ? 0.5f : 0.0f) << i << " of " << n;
      x[0] = std::numeric_limits<float>::quiet_NaN();
      softmax(x.data(), y.data(), 1, n);
      for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(std::isnan(y[i]));
    }
  });
}

TEST(Softmax, InPlace) {
  const std::size_t rows = 3, cols = 37;
  Fenced x = fenced_values(rows * cols, 1), want(rows * cols), dy = fenced_values(rows * cols, 2), want_dx(rows * cols);
  softmax(x.data(), want.data(), rows, cols);
  softmax(x.data(), x.data(), rows, cols);
  expect_same(x, want);
  softmax_grad(x.data(), dy.data(), want_dx.data(), rows, cols);
  softmax_grad(x.data(), dy.data(), dy.data(), rows, cols);
  expect_same(dy, want_dx);
}

}  // namespace
}  // namespace echelon::kernels
