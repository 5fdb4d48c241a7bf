#include "kernels/loss/loss.h"

#include <limits>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

std::vector<std::int32_t> random_targets(std::size_t rows, std::size_t cols, bool some_ignored) {
  std::mt19937 engine(static_cast<std::uint32_t>(rows * 131 + cols));
  std::vector<std::int32_t> t(rows);
  for (auto& v : t) v = some_ignored && engine() % 4 == 0 ? -1 : static_cast<std::int32_t>(engine() % cols);
  return t;
}

TEST(CrossEntropy, EqualsItsReference) {
  on_every_target([] {
    for (const std::size_t cols : std::vector<std::size_t>{1, 2, 3, 7, 8, 9, 10, 17, 65, 127, 1000, 5003})
      for (const std::size_t rows : std::vector<std::size_t>{0, 1, 5, 16})
        for (const float smoothing : {0.0f, 0.1f}) {
          const Fenced x = fenced_values(rows * cols, 1, -6, 6);
          const auto targets = random_targets(rows, cols, true);
          Fenced dx(x.size()), want_dx(x.size()), losses(rows), want_losses(rows), again(rows);
          const ClassLoss want = ref_cross_entropy_grad(x.data(), targets.data(), rows, cols, smoothing, 0.25f,
                                                        want_dx.data(), want_losses.data());
          const ClassLoss got =
              cross_entropy_grad(x.data(), targets.data(), rows, cols, smoothing, 0.25f, dx.data(), losses.data());
          const ClassLoss forward = cross_entropy(x.data(), targets.data(), rows, cols, smoothing, again.data());
          EXPECT_NEAR(got.loss, want.loss, 2e-6 * want.loss + 1e-6);
          EXPECT_EQ(forward.loss, got.loss);
          EXPECT_EQ(got.correct, want.correct);
          EXPECT_EQ(got.counted, want.counted);
          EXPECT_EQ(forward.correct, want.correct);
          expect_close(dx, want_dx, 1e-5, 1e-7);
          expect_close(losses, want_losses, 2e-6, 1e-6);
          expect_same(again, losses);

          Fenced in_place = x;
          cross_entropy_grad(in_place.data(), targets.data(), rows, cols, smoothing, 0.25f, in_place.data());
          expect_same(in_place, dx);
        }
  });
}

TEST(CrossEntropy, GradientAgreesWithFiniteDifferences) {
  const std::size_t rows = 3, cols = 5;
  const std::int32_t targets[] = {4, -1, 0};
  const Fenced x = fenced_values(rows * cols, 3);
  for (const double smoothing : {0.0, 0.2}) {
    const auto objective = [&](const std::vector<double>& v) {
      double loss = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        if (targets[r] < 0) continue;
        double total = 0;
        for (std::size_t c = 0; c < cols; ++c) total += std::exp(v[r * cols + c]);
        for (std::size_t c = 0; c < cols; ++c) {
          const double share = smoothing / cols + (static_cast<int>(c) == targets[r] ? 1 - smoothing : 0);
          loss += share * (std::log(total) - v[r * cols + c]);
        }
      }
      return loss;
    };
    const std::vector<double> base(x.data(), x.data() + rows * cols);
    Fenced dx(rows * cols);
    const ClassLoss got =
        cross_entropy_grad(x.data(), targets, rows, cols, static_cast<float>(smoothing), 2, dx.data());
    EXPECT_NEAR(got.loss, objective(base), 1e-5);
    for (std::size_t i = 0; i < rows * cols; ++i) {
      std::vector<double> up = base, down = base;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      EXPECT_NEAR(dx[i], 2 * (objective(up) - objective(down)) / 2e-5, 2e-6);
    }
  }
}

TEST(CrossEntropy, WeightedEqualsItsReference) {
  on_every_target([] {
    for (const std::size_t cols : std::vector<std::size_t>{1, 2, 3, 7, 8, 9, 17, 127, 1000})
      for (const bool weighted : {false, true})
        for (const auto& [smoothing, gamma] :
             {std::pair(0.0f, 0.0f), std::pair(0.1f, 0.0f), std::pair(0.0f, 2.0f), std::pair(0.0f, 0.5f)}) {
          const std::size_t rows = 5;
          const Fenced x = fenced_values(rows * cols, 1, -6, 6), weights = fenced_values(cols, 2, 0, 3);
          const auto targets = random_targets(rows, cols, true);
          const RowWeighting how{weighted ? weights.data() : nullptr, gamma};
          Fenced dx(x.size()), want_dx(x.size()), losses(rows), want_losses(rows), again(rows);
          const ClassLoss want = ref_weighted_cross_entropy_grad(x.data(), targets.data(), rows, cols, smoothing, how,
                                                                 0.25f, want_dx.data(), want_losses.data());
          const ClassLoss got = weighted_cross_entropy_grad(x.data(), targets.data(), rows, cols, smoothing, how, 0.25f,
                                                            dx.data(), losses.data());
          const ClassLoss forward =
              weighted_cross_entropy(x.data(), targets.data(), rows, cols, smoothing, how, again.data());
          EXPECT_NEAR(got.loss, want.loss, 4e-6 * want.loss + 1e-6);
          EXPECT_EQ(forward.loss, got.loss);
          EXPECT_EQ(got.correct, want.correct);
          EXPECT_EQ(got.counted, want.counted);
          expect_close(dx, want_dx, 2e-5, 2e-7);
          expect_close(losses, want_losses, 4e-6, 1e-6);
          expect_same(again, losses);
          Fenced in_place = x;
          weighted_cross_entropy_grad(in_place.data(), targets.data(), rows, cols, smoothing, how, 0.25f,
                                      in_place.data());
          expect_same(in_place, dx);
        }
  });
}

TEST(CrossEntropy, WithoutWeightsTheWeightedOneIsThePlainOne) {
  const Fenced x = fenced_values(6 * 11, 4, -3, 3);
  const auto targets = random_targets(6, 11, true);
  Fenced plain(x.size()), weighted(x.size());
  for (const float smoothing : {0.0f, 0.2f}) {
    const ClassLoss one = cross_entropy_grad(x.data(), targets.data(), 6, 11, smoothing, 1, plain.data());
    const ClassLoss two =
        weighted_cross_entropy_grad(x.data(), targets.data(), 6, 11, smoothing, {}, 1, weighted.data());
    EXPECT_NEAR(one.loss, two.loss, 1e-6 * one.loss);
    expect_close(weighted, plain, 1e-5, 1e-7);
  }
}

TEST(CrossEntropy, WeightedGradientAgreesWithFiniteDifferences) {
  const std::size_t rows = 3, cols = 5;
  const std::int32_t targets[] = {4, -1, 0};
  const float weights[] = {0.5f, 2, 1, 0, 3};
  const Fenced x = fenced_values(rows * cols, 3);
  for (const auto& [smoothing, gamma] :
       {std::pair(0.0, 0.0), std::pair(0.2, 0.0), std::pair(0.0, 2.0), std::pair(0.0, 0.5)}) {
    const auto objective = [&, smoothing = smoothing, gamma = gamma](const std::vector<double>& v) {
      double loss = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        if (targets[r] < 0) continue;
        double total = 0, row = 0;
        for (std::size_t c = 0; c < cols; ++c) total += std::exp(v[r * cols + c]);
        for (std::size_t c = 0; c < cols; ++c) {
          const double share = smoothing / cols + (static_cast<int>(c) == targets[r] ? 1 - smoothing : 0);
          row += weights[c] * share * (std::log(total) - v[r * cols + c]);
        }
        const double p = std::exp(v[r * cols + static_cast<std::size_t>(targets[r])]) / total;
        loss += std::pow(1 - p, gamma) * row;
      }
      return loss;
    };
    const std::vector<double> base(x.data(), x.data() + rows * cols);
    Fenced dx(rows * cols);
    const ClassLoss got = weighted_cross_entropy_grad(x.data(), targets, rows, cols, static_cast<float>(smoothing),
                                                      {weights, static_cast<float>(gamma)}, 2, dx.data());
    EXPECT_NEAR(got.loss, objective(base), 1e-5);
    for (std::size_t i = 0; i < rows * cols; ++i) {
      std::vector<double> up = base, down = base;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      EXPECT_NEAR(dx[i], 2 * (objective(up) - objective(down)) / 2e-5, 1e-5);
    }
  }
}

TEST(CrossEntropy, AFocalRowThatIsCertainHasNoLossAndNoGradient) {
  const float x[] = {100, -100, 0};
  const std::int32_t target = 0;
  for (const float gamma : {0.5f, 1.0f, 2.0f}) {
    float dx[3];
    EXPECT_EQ(weighted_cross_entropy_grad(x, &target, 1, 3, 0, {nullptr, gamma}, 1, dx).loss, 0);
    for (const float d : dx) EXPECT_EQ(d, 0);
  }
}

TEST(CrossEntropy, HugeLogitsStayFiniteAndTiesCountForTheFirst) {
  const float x[] = {1e30f, -1e30f, 0, 2, 2, 1};
  const std::int32_t right[] = {0, 0}, second[] = {0, 1};
  EXPECT_EQ(cross_entropy(x, right, 2, 3, 0).correct, 2);
  EXPECT_EQ(cross_entropy(x, second, 2, 3, 0).correct, 1);
  float dx[6];
  const ClassLoss got = cross_entropy_grad(x, right, 2, 3, 0, 1, dx);
  EXPECT_TRUE(std::isfinite(got.loss));
  EXPECT_EQ(dx[0], 0);
  EXPECT_EQ(dx[1], 0);
}

TEST(CrossEntropy, BadTargetsAreFound) {
  const std::int32_t targets[] = {0, -5, 9, 10, 11};
  EXPECT_EQ(check_targets(targets, 5, 10), 3);
  EXPECT_EQ(check_targets(targets, 5, 12), -1);
}

TEST(Loss, ElementLossesEqualTheirReferences) {
  on_every_target([] {
    for (const std::size_t n : odd_sizes) {
      const Fenced x = fenced_values(n, 1, -9, 9), t = fenced_values(n, 2, 0, 1);
      const auto near = [&](double got, double want) { EXPECT_NEAR(got, want, 1e-6 * std::fabs(want) + 1e-7) << n; };
      near(mse(x.data(), t.data(), n), ref_mse(x.data(), t.data(), n));
      near(l1(x.data(), t.data(), n), ref_l1(x.data(), t.data(), n));
      near(huber(x.data(), t.data(), 1.5f, n), ref_huber(x.data(), t.data(), 1.5f, n));
      near(bce_with_logits(x.data(), t.data(), n), ref_bce_with_logits(x.data(), t.data(), n));

      Fenced dx(n), want(n);
      mse_grad(x.data(), t.data(), 0.3f, dx.data(), n);
      ref_mse_grad(x.data(), t.data(), 0.3f, want.data(), n);
      expect_close(dx, want, 1e-6);
      l1_grad(x.data(), t.data(), 0.3f, dx.data(), n);
      ref_l1_grad(x.data(), t.data(), 0.3f, want.data(), n);
      expect_same(dx, want);
      huber_grad(x.data(), t.data(), 1.5f, 0.3f, dx.data(), n);
      ref_huber_grad(x.data(), t.data(), 1.5f, 0.3f, want.data(), n);
      expect_close(dx, want, 1e-6, 1e-7);
      bce_with_logits_grad(x.data(), t.data(), 0.3f, dx.data(), n);
      ref_bce_with_logits_grad(x.data(), t.data(), 0.3f, want.data(), n);
      expect_close(dx, want, 1e-6, 1e-7);

      Fenced in_place = x;
      bce_with_logits_grad(in_place.data(), t.data(), 0.3f, in_place.data(), n);
      expect_same(in_place, dx);
    }
  });
}

TEST(Loss, QuantilesEqualTheirReference) {
  const float levels[] = {0.1f, 0.5f, 0.9f};
  for (const std::size_t rows : odd_sizes)
    for (const std::size_t quantiles : {1, 2, 3}) {
      const Fenced x = fenced_values(rows * quantiles, 1, -9, 9), t = fenced_values(rows, 2, -9, 9);
      const double want = ref_quantile_loss(x.data(), t.data(), levels, rows, quantiles);
      EXPECT_NEAR(quantile_loss(x.data(), t.data(), levels, rows, quantiles), want, 1e-9 * std::fabs(want) + 1e-9);
      Fenced dx(rows * quantiles), want_dx(rows * quantiles);
      quantile_loss_grad(x.data(), t.data(), levels, 0.3f, dx.data(), rows, quantiles);
      ref_quantile_loss_grad(x.data(), t.data(), levels, 0.3f, want_dx.data(), rows, quantiles);
      expect_close(dx, want_dx, 1e-6);
    }
}

TEST(Loss, TheBestQuantileHasTheShareBelowIt) {
  // The sum over many targets is least where `level` of them lie below.
  std::vector<float> t;
  for (int i = 0; i < 99; ++i) t.push_back(static_cast<float>(i * 37 % 99));
  const float level = 0.25f;
  double least = 1e30;
  float best = 0;
  for (float x = 0; x < 99; x += 1) {
    const std::vector<float> all(t.size(), x);
    const double loss = quantile_loss(all.data(), t.data(), &level, t.size(), 1);
    if (loss < least) least = loss, best = x;
  }
  EXPECT_EQ(best, 24);
}

TEST(Loss, GradientsAgreeWithFiniteDifferences) {
  for (float x = -3; x < 3; x += 0.37f) {
    const float t = 0.25f, h = 1 / 256.0f, up = x + h, down = x - h;
    const auto check = [&](auto loss, auto grad) {
      float dx = 0;
      grad(&x, &t, &dx);
      EXPECT_NEAR(dx, (loss(&up, &t) - loss(&down, &t)) / (static_cast<double>(up) - down), 2e-4) << x;
    };
    check([](auto* a, auto* b) { return ref_mse(a, b, 1); },
          [](auto* a, auto* b, float* d) { mse_grad(a, b, 1, d, 1); });
    check([](auto* a, auto* b) { return ref_l1(a, b, 1); }, [](auto* a, auto* b, float* d) { l1_grad(a, b, 1, d, 1); });
    check([](auto* a, auto* b) { return ref_huber(a, b, 1.5f, 1); },
          [](auto* a, auto* b, float* d) { huber_grad(a, b, 1.5f, 1, d, 1); });
    static constexpr float level = 0.2f;
    check([](auto* a, auto* b) { return ref_quantile_loss(a, b, &level, 1, 1); },
          [](auto* a, auto* b, float* d) { quantile_loss_grad(a, b, &level, 1, d, 1, 1); });
    check([](auto* a, auto* b) { return ref_bce_with_logits(a, b, 1); },
          [](auto* a, auto* b, float* d) { bce_with_logits_grad(a, b, 1, d, 1); });
  }
}

}  // namespace
}  // namespace echelon::kernels
