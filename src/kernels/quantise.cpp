#include "kernels/quantise.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE V forth(const Steps& s, V x) { return hn::Add(hn::Mul(x, set(s.in_scale)), set(s.in_offset)); }
HWY_INLINE V back(const Steps& s, V level) {
  const V inside = hn::Min(set(s.most), hn::Max(set(s.least), level));  // in this order a NaN stays one
  const V overflow = hn::Sub(level, level);                             // 0; no number for an infinity
  return hn::Add(hn::Add(hn::Mul(inside, set(s.out_scale)), set(s.out_offset)), overflow);
}
HWY_INLINE V with_sign_of(V x, V size) {
  const V y = hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::Neg(size), size);
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

HWY_FLATTEN void steps(const Steps& s, const float* x, float* y, std::size_t n) {
  for_each_vector(n, [&](auto at) HWY_ATTR { at.store(back(s, hn::Round(forth(s, at.load(x)))), y); });
}

HWY_FLATTEN void chance(const Steps& s, const float* u, const float* x, float* y, std::size_t n) {
  for_each_vector(
      n, [&](auto at) HWY_ATTR { at.store(back(s, hn::Floor(hn::Add(forth(s, at.load(x)), at.load(u)))), y); });
}

HWY_FLATTEN void sign(float size, const float* x, float* y, std::size_t n) {
  const V v = set(size);
  for_each_vector(n, [&](auto at) HWY_ATTR { at.store(with_sign_of(at.load(x), v), y); });
}

HWY_FLATTEN void three(float threshold, float size, const float* x, float* y, std::size_t n) {
  const V limit = set(threshold), v = set(size);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V here = at.load(x);
    at.store(hn::IfThenElseZero(hn::Gt(hn::Abs(here), limit), with_sign_of(here, v)), y);
  });
}

HWY_FLATTEN void between(float least, float most, const float* x, const float* dy, float* dx, std::size_t n) {
  const V low = set(least), high = set(most);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V here = at.load(x);
    at.store(hn::IfThenElseZero(hn::And(hn::Ge(here, low), hn::Le(here, high)), at.load(dy)), dx);
  });
}

HWY_FLATTEN void sums_above(float threshold, const float* x, std::size_t n, double (&total)[2]) {
  const V limit = set(threshold), one = set(1);
  blocked_sums(
      n,
      [&](auto at, V(&v)[2]) HWY_ATTR {
        const V size = hn::Abs(at.load(x));
        const auto counts = hn::Gt(size, limit);
        v[0] = hn::IfThenElseZero(counts, size);
        v[1] = hn::IfThenElseZero(counts, one);
      },
      total);
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <array>

#include "kernels/dropout.h"

namespace echelon::kernels {

HWY_EXPORT(steps);
HWY_EXPORT(chance);
HWY_EXPORT(sign);
HWY_EXPORT(three);
HWY_EXPORT(between);
HWY_EXPORT(sums_above);

void round_to_steps(const Steps& s, const float* x, float* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(steps)(s, x, y, n);
}

void round_by_chance(const Steps& s, const Stream& stream, const float* x, float* y, std::size_t n) {
  std::array<float, 1024> u;
  for (std::size_t i = 0; i < n; i += u.size()) {
    const std::size_t count = std::min(u.size(), n - i);
    fill_uniform(stream, i, std::span(u).first(count));
    HWY_DYNAMIC_DISPATCH(chance)(s, u.data(), x + i, y + i, count);
  }
}

void signs(float size, const float* x, float* y, std::size_t n) { HWY_DYNAMIC_DISPATCH(sign)(size, x, y, n); }

void three_values(float threshold, float size, const float* x, float* y, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(three)(threshold, size, x, y, n);
}

void pass_between(float least, float most, const float* x, const float* dy, float* dx, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(between)(least, most, x, dy, dx, n);
}

Above above(float threshold, const float* x, std::size_t n) {
  double total[2] = {};
  HWY_DYNAMIC_DISPATCH(sums_above)(threshold, x, n, total);
  return {total[0], total[1]};
}

}  // namespace echelon::kernels
#endif
