#include "kernels/norm/layer_norm.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/layer_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

template <class At>
HWY_INLINE V load_or(At at, const float* p, V otherwise) {
  return p == nullptr ? otherwise : at.load(p);  // the same branch all along: the compiler takes it out of the loop
}

HWY_FLATTEN void layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean,
                            float* rstd, std::size_t rows, std::size_t cols) {
  const V zero = hn::Zero(D()), one = set(1.0f);
  const double inverse_count = 1 / static_cast<double>(cols);
  const std::size_t together = rows_together(cols);
  float m[most_rows_together], s[most_rows_together];
  for (std::size_t r = 0; r < rows; r += together, x += together * cols, y += together * cols) {
    const std::size_t count = std::min(together, rows - r);
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = x + k * cols;
      m[k] = static_cast<float>(blocked_sum(cols, [&](auto at) HWY_ATTR { return at.load(row); }) * inverse_count);
    }
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = x + k * cols;
      const V center = set(m[k]);
      const double squares = blocked_sum(cols, [&](auto at) HWY_ATTR {
        const V d = hn::Sub(at.load(row), center);
        return hn::Mul(d, d);
      });
      s[k] = 1 / std::sqrt(static_cast<float>(squares * inverse_count) + eps);
    }
    for (std::size_t k = 0; k < count; ++k) {
      const float* row = x + k * cols;
      float* out = y + k * cols;
      const V center = set(m[k]), scale = set(s[k]);
      for_each_vector(cols, [&](auto at) HWY_ATTR {
        const V normalised = hn::Mul(hn::Sub(at.load(row), center), scale);
        at.store(hn::MulAdd(normalised, load_or(at, gamma, one), load_or(at, beta, zero)), out);
      });
      if (mean != nullptr) mean[r + k] = m[k];
      if (rstd != nullptr) rstd[r + k] = s[k];
    }
  }
}

// Adds the share of `count` rows to dgamma and dbeta, which are touched once for them.
HWY_INLINE void add_parameter_grad(const float* x, const float* mean, const float* rstd, const float* dy, float* dgamma,
                                   float* dbeta, std::size_t count, std::size_t cols) {
  for_each_vector(cols, [&](auto at) HWY_ATTR {
    V g = hn::Zero(D()), b = hn::Zero(D());
    for (std::size_t k = 0; k < count; ++k) {
      const V upstream = at.load(dy + k * cols);
      const V normalised = hn::Mul(hn::Sub(at.load(x + k * cols), set(mean[k])), set(rstd[k]));
      g = hn::MulAdd(upstream, normalised, g);
      b = hn::Add(upstream, b);
    }
    at.store(hn::Add(at.load(dgamma), g), dgamma);
    at.store(hn::Add(at.load(dbeta), b), dbeta);
  });
}

// dx = rstd * (u - mean(u) - xhat * mean(u * xhat)) with u = dy * gamma, for `count` rows.
HWY_INLINE void input_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                           float* dx, std::size_t count, std::size_t cols) {
  const V one = set(1.0f);
  const double inverse_count = 1 / static_cast<double>(cols);
  float mean_u[most_rows_together], mean_ux[most_rows_together];
  for (std::size_t k = 0; k < count; ++k) {
    const float *x_row = x + k * cols, *dy_row = dy + k * cols;
    const V center = set(mean[k]), scale = set(rstd[k]);
    double totals[2] = {};
    blocked_sums(
        cols,
        [&](auto at, V(&v)[2]) HWY_ATTR {
          v[0] = hn::Mul(at.load(dy_row), load_or(at, gamma, one));
          v[1] = hn::Mul(v[0], hn::Mul(hn::Sub(at.load(x_row), center), scale));
        },
        totals);
    mean_u[k] = static_cast<float>(totals[0] * inverse_count);
    mean_ux[k] = static_cast<float>(totals[1] * inverse_count);
  }
  for (std::size_t k = 0; k < count; ++k) {
    const float *x_row = x + k * cols, *dy_row = dy + k * cols;
    float* dx_row = dx + k * cols;
    const V center = set(mean[k]), scale = set(rstd[k]), shift = set(mean_u[k]), slope = set(mean_ux[k]);
    for_each_vector(cols, [&](auto at) HWY_ATTR {
      const V u = hn::Mul(at.load(dy_row), load_or(at, gamma, one));
      const V normalised = hn::Mul(hn::Sub(at.load(x_row), center), scale);
      at.store(hn::Mul(scale, hn::NegMulAdd(normalised, slope, hn::Sub(u, shift))), dx_row);
    });
  }
}

HWY_FLATTEN void layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd,
                                 const float* dy, float* dx, float* dgamma, float* dbeta, std::size_t rows,
                                 std::size_t cols, bool go_on) {
  if (dgamma != nullptr && !go_on) {
    std::fill_n(dgamma, cols, 0.0f);
    std::fill_n(dbeta, cols, 0.0f);
  }
  // A few rows at a time stay in the first-level cache between the two uses; dx comes last because it may be dy.
  constexpr std::size_t together = most_rows_together;
  static_assert(together == layer_norm_rows, "what may be continued begins where a group of rows does");
  for (std::size_t r = 0; r < rows; r += together, x += together * cols, dy += together * cols) {
    const std::size_t count = std::min(together, rows - r);
    if (dgamma != nullptr) {
      if (count == together)  // a constant, for the compiler to unroll
        add_parameter_grad(x, mean + r, rstd + r, dy, dgamma, dbeta, together, cols);
      else
        add_parameter_grad(x, mean + r, rstd + r, dy, dgamma, dbeta, count, cols);
    }
    if (dx != nullptr) input_grad(x, gamma, mean + r, rstd + r, dy, dx + r * cols, count, cols);
  }
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(layer_norm);
HWY_EXPORT(layer_norm_grad);

void layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean, float* rstd,
                std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm)(x, gamma, beta, eps, y, mean, rstd, rows, cols);
}
void layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                     float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols, bool go_on) {
  HWY_DYNAMIC_DISPATCH(layer_norm_grad)(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, cols, go_on);
}

}  // namespace echelon::kernels
#endif
