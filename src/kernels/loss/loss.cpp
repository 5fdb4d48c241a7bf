// The losses per element; cross-entropy is in cross_entropy.cpp.
#include "kernels/loss/loss.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss/loss.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_FLATTEN double mse(const float* x, const float* t, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    const V d = hn::Sub(at.load(x), at.load(t));
    return hn::Mul(d, d);
  });
}

HWY_FLATTEN double l1(const float* x, const float* t, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR { return hn::Abs(hn::Sub(at.load(x), at.load(t))); });
}

HWY_FLATTEN double huber(const float* x, const float* t, float delta, std::size_t n) {
  const V edge = set(delta), half = set(0.5f);
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    // With q = min(d, delta): q^2/2 + delta (d - q) is both branches in one.
    const V d = hn::Abs(hn::Sub(at.load(x), at.load(t)));
    const V q = hn::Min(edge, d);
    return hn::Add(hn::Mul(half, hn::Mul(q, q)), hn::Mul(edge, hn::Sub(d, q)));
  });
}

HWY_FLATTEN double bce_with_logits(const float* x, const float* t, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    const V logit = at.load(x);
    return hn::Sub(fast_softplus(logit), hn::Mul(logit, at.load(t)));
  });
}

HWY_FLATTEN void mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  const V twice = set(2 * scale);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(hn::Mul(twice, hn::Sub(at.load(x), at.load(t))), dx); });
}

HWY_FLATTEN void l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  const V zero = hn::Zero(D()), up = set(scale), down = set(-scale);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const V d = hn::Sub(at.load(x), at.load(t));
    // d itself where it is neither above nor below: 0, or NaN.
    at.store(hn::IfThenElse(hn::Gt(d, zero), up, hn::IfThenElse(hn::Lt(d, zero), down, d)), dx);
  });
}

HWY_FLATTEN void huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n) {
  const V factor = set(scale);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    at.store(hn::Mul(factor, clamp_keeping_nan(hn::Sub(at.load(x), at.load(t)), -delta, delta)), dx);
  });
}

HWY_FLATTEN void bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  const V factor = set(scale);
  for_each_vector(
      n, [&](auto at) HWY_ATTR { at.store(hn::Mul(factor, hn::Sub(fast_sigmoid(at.load(x)), at.load(t))), dx); });
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(mse);
HWY_EXPORT(l1);
HWY_EXPORT(huber);
HWY_EXPORT(bce_with_logits);
HWY_EXPORT(mse_grad);
HWY_EXPORT(l1_grad);
HWY_EXPORT(huber_grad);
HWY_EXPORT(bce_with_logits_grad);

double mse(const float* x, const float* t, std::size_t n) { return HWY_DYNAMIC_DISPATCH(mse)(x, t, n); }
double l1(const float* x, const float* t, std::size_t n) { return HWY_DYNAMIC_DISPATCH(l1)(x, t, n); }
double huber(const float* x, const float* t, float delta, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(huber)(x, t, delta, n);
}
double bce_with_logits(const float* x, const float* t, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(bce_with_logits)(x, t, n);
}
void mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(mse_grad)(x, t, scale, dx, n);
}
void l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(l1_grad)(x, t, scale, dx, n);
}
void huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(huber_grad)(x, t, delta, scale, dx, n);
}
void bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(bce_with_logits_grad)(x, t, scale, dx, n);
}

}  // namespace echelon::kernels
#endif
