#include "kernels/vector.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_FLATTEN void add(float* dst, const float* a, const float* b, std::size_t n) {
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(hn::Add(at.load(a), at.load(b)), dst); });
}

HWY_FLATTEN void scale(float* dst, const float* src, float c, std::size_t n) {
  const V factor = set(c);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(hn::Mul(factor, at.load(src)), dst); });
}

HWY_FLATTEN void axpy(float* dst, float c, const float* x, std::size_t n) {
  const V factor = set(c);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(hn::Add(at.load(dst), hn::Mul(factor, at.load(x))), dst); });
}

HWY_FLATTEN void lerp(float* dst, const float* a, const float* b, float t, std::size_t n) {
  const V share = set(t);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const V from = at.load(a);
    at.store(hn::Add(from, hn::Mul(share, hn::Sub(at.load(b), from))), dst);
  });
}

// A number times zero is zero, unless it is none.
HWY_FLATTEN bool all_finite(const float* x, std::size_t n) {
  V bad = set(0);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { bad = hn::Or(bad, hn::Mul(at.load(x), set(0))); });
  return hn::AllTrue(hn::ScalableTag<float>(), hn::Eq(bad, set(0)));
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cstring>

namespace echelon::kernels {

HWY_EXPORT(add);
HWY_EXPORT(scale);
HWY_EXPORT(axpy);
HWY_EXPORT(lerp);
HWY_EXPORT(all_finite);

void fill(float* dst, float value, std::size_t n) { std::fill_n(dst, n, value); }

void copy(float* dst, const float* src, std::size_t n) {
  if (n > 0 && dst != src) std::memcpy(dst, src, n * sizeof(float));
}

void add(float* dst, const float* a, const float* b, std::size_t n) { HWY_DYNAMIC_DISPATCH(add)(dst, a, b, n); }
void add_into(float* dst, const float* src, std::size_t n) { add(dst, dst, src, n); }
void scale(float* dst, const float* src, float c, std::size_t n) { HWY_DYNAMIC_DISPATCH(scale)(dst, src, c, n); }
void axpy(float* dst, float c, const float* x, std::size_t n) { HWY_DYNAMIC_DISPATCH(axpy)(dst, c, x, n); }
void lerp(float* dst, const float* a, const float* b, float t, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(lerp)(dst, a, b, t, n);
}
bool all_finite(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(all_finite)(x, n); }

}  // namespace echelon::kernels
#endif
