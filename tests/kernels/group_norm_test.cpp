#include "kernels/norm/group_norm.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(GroupNorm, EqualsItsReference) {
  on_every_target([] {
    for (const std::size_t inner : std::vector<std::size_t>{1, 3, 8, 25, 49, 4099})
      for (const std::size_t groups : std::vector<std::size_t>{1, 2, 6})
        for (const std::size_t samples : std::vector<std::size_t>{1, 3}) {
          const GroupNormShape s{.samples = samples, .channels = 6, .inner = inner, .groups = groups};
          if (s.cols() < 2) continue;  // one number has no variance
          SCOPED_TRACE(std::to_string(samples) + " x 6 x " + std::to_string(inner) + " in " + std::to_string(groups));
          const std::size_t n = samples * 6 * inner;
          const Fenced x = fenced_values(n, 1, -2, 5), dy = fenced_values(n, 2);
          const Fenced gamma = fenced_values(6, 3), beta = fenced_values(6, 4);
          const float eps = 1e-3f;
          Fenced y(n), mean(s.rows()), rstd(s.rows()), want_y(n), want_mean(s.rows()), want_rstd(s.rows());
          group_norm(s, x.data(), gamma.data(), beta.data(), eps, y.data(), mean.data(), rstd.data());
          ref_group_norm(s, x.data(), gamma.data(), beta.data(), eps, want_y.data(), want_mean.data(),
                         want_rstd.data());
          expect_close(mean, want_mean, 1e-6, 1e-6);
          expect_close(rstd, want_rstd, 3e-6);
          expect_close(y, want_y, 1e-5, 2e-5);

          Fenced dx(n), dgamma(6, 7), dbeta(6, 7), want_dx(n), want_dgamma(6), want_dbeta(6);
          group_norm_grad(s, x.data(), gamma.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dgamma.data(),
                          dbeta.data());
          ref_group_norm_grad(s, x.data(), gamma.data(), mean.data(), rstd.data(), dy.data(), want_dx.data(),
                              want_dgamma.data(), want_dbeta.data());
          expect_close(dx, want_dx, 2e-5, 2e-4);
          expect_close(dgamma, want_dgamma, 1e-4, 1e-3);
          expect_close(dbeta, want_dbeta, 1e-5, 1e-4);
          Fenced in_place = dy, more(6), params(6);
          group_norm_grad(s, x.data(), gamma.data(), mean.data(), rstd.data(), in_place.data(), in_place.data(),
                          params.data(), more.data());
          expect_same(in_place, dx);
          expect_same(params, dgamma);
        }
  });
}

}  // namespace
}  // namespace echelon::kernels
