// The parts of a softmax over one row, for the kernels that have one inside (softmax, cross-entropy, attention).

#if defined(ECHELON_KERNELS_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_SOFTMAX_INL_H
#undef ECHELON_KERNELS_SOFTMAX_INL_H
#else
#define ECHELON_KERNELS_SOFTMAX_INL_H
#endif

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// The greatest of n > 0 values; NaN is passed over (it comes back through exp_row).
HWY_INLINE float row_max(const float* x, std::size_t n) {
  if (n < width) {
    float greatest = x[0];
    for (std::size_t i = 1; i < n; ++i) greatest = x[i] > greatest ? x[i] : greatest;
    return greatest;
  }
  // Two running maxima; the last vector overlaps the one before, which a maximum does not mind.
  V a = hn::LoadU(D(), x), b = hn::LoadU(D(), x + n - width);
  std::size_t i = width;
  for (; i + 2 * width <= n; i += 2 * width) {
    a = hn::Max(hn::LoadU(D(), x + i), a);
    b = hn::Max(hn::LoadU(D(), x + i + width), b);
  }
  if (i + width <= n) a = hn::Max(hn::LoadU(D(), x + i), a);
  return hn::GetLane(hn::MaxOfLanes(D(), hn::Max(a, b)));
}

// y[i] = exp(x[i] - shift), and their sum. y may be x.
HWY_INLINE double exp_row(const float* x, float shift, float* y, std::size_t n) {
  const V shifts = set(shift);
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    const V e = fast_exp(hn::Sub(at.load(x), shifts));
    at.store(e, y);
    return e;
  });
}

// The sum alone.
HWY_INLINE double exp_row_sum(const float* x, float shift, std::size_t n) {
  const V shifts = set(shift);
  return blocked_sum(n, [&](auto at) HWY_ATTR { return fast_exp(hn::Sub(at.load(x), shifts)); });
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
