#include "kernels/layer_norm.h"

#include "kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

template <class At>
HWY_INLINE V load_or(At at, const float* p, V otherwise) {
  return p == nullptr ? otherwise : at.load(p);  // the same branch all along: the compiler takes it out of the loop
}

void layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean, float* rstd,
                std::size_t rows, std::size_t cols) {
  const V zero = hn::Zero(D()), one = set(1.0f);
  const auto count = static_cast<double>(cols);
  for (std::size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const auto m = static_cast<float>(blocked_sum(cols, [&](auto at) HWY_ATTR { return at.load(x); }) / count);
    const V center = set(m);
    const double squares = blocked_sum(cols, [&](auto at) HWY_ATTR {
      const V d = hn::Sub(at.load(x), center);
      return hn::Mul(d, d);
    });
    const auto inverse = static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(eps)));
    if (mean != nullptr) mean[r] = m;
    if (rstd != nullptr) rstd[r] = inverse;
    const V scale = set(inverse);
    for_each_vector(cols, [&](auto at) HWY_ATTR {
      const V normalised = hn::Mul(hn::Sub(at.load(x), center), scale);
      at.store(hn::MulAdd(normalised, load_or(at, gamma, one), load_or(at, beta, zero)), y);
    });
  }
}

// dgamma and dbeta get the share of `count` rows. In the order of the rows, four accumulated before memory is touched.
HWY_INLINE void add_parameter_grad(const float* x, const float* mean, const float* rstd, const float* dy, float* dgamma,
                                   float* dbeta, std::size_t count, std::size_t cols) {
  for_each_vector(cols, [&](auto at) HWY_ATTR {
    V g = hn::Zero(D()), b = hn::Zero(D());
    for (std::size_t r = 0; r < count; ++r) {
      const V upstream = at.load(dy + r * cols);
      const V normalised = hn::Mul(hn::Sub(at.load(x + r * cols), set(mean[r])), set(rstd[r]));
      g = hn::MulAdd(upstream, normalised, g);
      b = hn::Add(upstream, b);
    }
    at.store(hn::Add(at.load(dgamma), g), dgamma);
    at.store(hn::Add(at.load(dbeta), b), dbeta);
  });
}

// dx = rstd * (u - mean(u) - xhat * mean(u * xhat)) with u = dy * gamma, for one row.
HWY_INLINE void input_grad(const float* x, const float* gamma, float mean, float rstd, const float* dy, float* dx,
                           std::size_t cols) {
  const V one = set(1.0f), center = set(mean), scale = set(rstd);
  const auto count = static_cast<double>(cols);
  const double plain =
      blocked_sum(cols, [&](auto at) HWY_ATTR { return hn::Mul(at.load(dy), load_or(at, gamma, one)); });
  const double along = blocked_sum(cols, [&](auto at) HWY_ATTR {
    const V u = hn::Mul(at.load(dy), load_or(at, gamma, one));
    return hn::Mul(u, hn::Mul(hn::Sub(at.load(x), center), scale));
  });
  const V mean_u = set(static_cast<float>(plain / count)), mean_ux = set(static_cast<float>(along / count));
  for_each_vector(cols, [&](auto at) HWY_ATTR {
    const V u = hn::Mul(at.load(dy), load_or(at, gamma, one));
    const V normalised = hn::Mul(hn::Sub(at.load(x), center), scale);
    at.store(hn::Mul(scale, hn::NegMulAdd(normalised, mean_ux, hn::Sub(u, mean_u))), dx);
  });
}

void layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                     float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols) {
  if (dgamma != nullptr) {
    std::fill_n(dgamma, cols, 0.0f);
    std::fill_n(dbeta, cols, 0.0f);
  }
  // Four rows at a time stay in the first-level cache between the two uses; dx comes last because it may be dy.
  for (std::size_t r = 0; r < rows; r += 4) {
    const std::size_t count = std::min<std::size_t>(4, rows - r), at = r * cols;
    if (dgamma != nullptr) {
      if (count == 4)
        add_parameter_grad(x + at, mean + r, rstd + r, dy + at, dgamma, dbeta, 4, cols);
      else
        add_parameter_grad(x + at, mean + r, rstd + r, dy + at, dgamma, dbeta, count, cols);
    }
    if (dx != nullptr)
      for (std::size_t k = 0; k < count; ++k)
        input_grad(x + at + k * cols, gamma, mean[r + k], rstd[r + k], dy + at + k * cols, dx + at + k * cols, cols);
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
                     float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols) {
  HWY_DYNAMIC_DISPATCH(layer_norm_grad)(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, cols);
}

}  // namespace echelon::kernels
#endif
