#include "kernels/update.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "base/error.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

// All products and sums are rounded one by one, in the order of update_ref.cpp: the same bits on every target. The
// passes are limited by memory, so fused multiply-adds would gain nothing.
HWY_INLINE V constant(double x) { return set(static_cast<float>(x)); }
HWY_INLINE V mul_add(V a, V b, V c) { return hn::Add(hn::Mul(a, b), c); }

// The gradient as every rule but adamw and lamb sees it.
struct Decay {
  V scale, decay;
  template <class Settings>
  explicit HWY_INLINE Decay(const Settings& s) : scale(constant(s.grad_scale)), decay(constant(s.weight_decay)) {}
  HWY_INLINE V operator()(V w, V g) const { return hn::Add(hn::Mul(g, scale), hn::Mul(decay, w)); }
};

// Adam's moments and its bias-corrected direction m^ / (sqrt(v^) + eps), times `size`.
struct AdamStep {
  V size, keep_m, keep_v, new_v, inverse_root, eps;
  HWY_INLINE AdamStep(const AdamSettings& s, double step_size) {
    const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(s.step));
    const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(s.step));
    size = constant(step_size / correction1);
    keep_m = constant(1 - s.beta1);
    keep_v = constant(s.beta2);
    new_v = constant(1 - s.beta2);
    inverse_root = constant(1 / std::sqrt(correction2));
    eps = constant(s.eps);
  }
  HWY_INLINE V operator()(V g, V& m, V& v) const {
    m = hn::Add(m, hn::Mul(keep_m, hn::Sub(g, m)));
    v = hn::Add(hn::Mul(keep_v, v), hn::Mul(new_v, hn::Mul(g, g)));
    return hn::Mul(size, hn::Div(m, mul_add(hn::Sqrt(v), inverse_root, eps)));
  }
};

HWY_FLATTEN void sgd(const SgdSettings& s, float* w, const float* g, std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w);
    at.store(hn::Sub(weight, hn::Mul(lr, decayed(weight, at.load(g)))), w);
  });
}

HWY_FLATTEN void lars(const SgdSettings& s, double trust_ratio, float* w, const float* g, float* velocity,
                      std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr), momentum = constant(s.momentum), trust = constant(trust_ratio);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w);
    const V moved = mul_add(momentum, at.load(velocity), hn::Mul(trust, decayed(weight, at.load(g))));
    at.store(moved, velocity);
    at.store(hn::Sub(weight, hn::Mul(lr, moved)), w);
  });
}

HWY_FLATTEN void nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr), momentum = constant(s.momentum);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w), gradient = decayed(weight, at.load(g));
    const V moved = mul_add(momentum, at.load(velocity), gradient);
    at.store(moved, velocity);
    at.store(hn::Sub(weight, hn::Mul(lr, mul_add(momentum, moved, gradient))), w);
  });
}

HWY_FLATTEN void adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr), eps = constant(s.eps);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w), gradient = decayed(weight, at.load(g));
    const V squares = mul_add(gradient, gradient, at.load(square_sum));
    at.store(squares, square_sum);
    at.store(hn::Sub(weight, hn::Mul(lr, hn::Div(gradient, hn::Add(hn::Sqrt(squares), eps)))), w);
  });
}

HWY_FLATTEN void adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg,
                          std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr), eps = constant(s.eps), keep = constant(s.rho), fresh = constant(1 - s.rho);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w), gradient = decayed(weight, at.load(g)), deltas = at.load(delta_avg);
    const V squares = hn::Add(hn::Mul(keep, at.load(square_avg)), hn::Mul(fresh, hn::Mul(gradient, gradient)));
    const V ratio = hn::Div(hn::Sqrt(hn::Add(deltas, eps)), hn::Sqrt(hn::Add(squares, eps)));
    const V delta = hn::Mul(ratio, gradient);
    at.store(squares, square_avg);
    at.store(hn::Add(hn::Mul(keep, deltas), hn::Mul(fresh, hn::Mul(delta, delta))), delta_avg);
    at.store(hn::Sub(weight, hn::Mul(lr, delta)), w);
  });
}

HWY_FLATTEN void rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity,
                         std::size_t n) {
  const Decay decayed(s);
  const V lr = constant(s.lr), eps = constant(s.eps), keep = constant(s.alpha), fresh = constant(1 - s.alpha),
          momentum = constant(s.momentum);
  const bool moving = s.momentum != 0;
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w), gradient = decayed(weight, at.load(g));
    const V squares = hn::Add(hn::Mul(keep, at.load(square_avg)), hn::Mul(fresh, hn::Mul(gradient, gradient)));
    V direction = hn::Div(gradient, hn::Add(hn::Sqrt(squares), eps));
    at.store(squares, square_avg);
    if (moving) {
      direction = mul_add(momentum, at.load(velocity), direction);
      at.store(direction, velocity);
    }
    at.store(hn::Sub(weight, hn::Mul(lr, direction)), w);
  });
}

HWY_FLATTEN void adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  const Decay decayed(s);
  const AdamStep step(s, s.lr);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    const V weight = at.load(w);
    V first = at.load(m), second = at.load(v);
    at.store(hn::Sub(weight, step(decayed(weight, at.load(g)), first, second)), w);
    at.store(first, m);
    at.store(second, v);
  });
}

HWY_FLATTEN void adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  const AdamStep step(s, s.lr);
  const V scale = constant(s.grad_scale), keep = constant(1 - s.lr * s.weight_decay);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    V first = at.load(m), second = at.load(v);
    at.store(hn::Sub(hn::Mul(at.load(w), keep), step(hn::Mul(at.load(g), scale), first, second)), w);
    at.store(first, m);
    at.store(second, v);
  });
}

HWY_FLATTEN void lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v,
                                float* direction, std::size_t n) {
  const AdamStep step(s, 1);
  const V scale = constant(s.grad_scale), decay = constant(s.weight_decay);
  for_each_vector(n, [&](auto at) HWY_ATTR {
    V first = at.load(m), second = at.load(v);
    const V moved = step(hn::Mul(at.load(g), scale), first, second);
    at.store(hn::Add(moved, hn::Mul(decay, at.load(w))), direction);
    at.store(first, m);
    at.store(second, v);
  });
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/vector.h"

namespace echelon::kernels {

HWY_EXPORT(sgd);
HWY_EXPORT(lars);
HWY_EXPORT(nesterov);
HWY_EXPORT(adagrad);
HWY_EXPORT(adadelta);
HWY_EXPORT(rmsprop);
HWY_EXPORT(adam);
HWY_EXPORT(adamw);
HWY_EXPORT(lamb_direction);

namespace {
void check_step(const AdamSettings& s) { invariant(s.step >= 1, "Adam's step is counted from 1"); }
}  // namespace

void sgd(const SgdSettings& s, float* w, const float* g, std::size_t n) { HWY_DYNAMIC_DISPATCH(sgd)(s, w, g, n); }
void momentum(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(lars)(s, 1, w, g, velocity, n);
}
void nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(nesterov)(s, w, g, velocity, n);
}
void lars(const SgdSettings& s, double trust, float* w, const float* g, float* velocity, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(lars)(s, trust, w, g, velocity, n);
}
void adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(adagrad)(s, w, g, square_sum, n);
}
void adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(adadelta)(s, w, g, square_avg, delta_avg, n);
}
void rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(rmsprop)(s, w, g, square_avg, velocity, n);
}
void adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  check_step(s);
  HWY_DYNAMIC_DISPATCH(adam)(s, w, g, m, v, n);
}
void adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  check_step(s);
  HWY_DYNAMIC_DISPATCH(adamw)(s, w, g, m, v, n);
}
void lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v, float* direction,
                    std::size_t n) {
  check_step(s);
  HWY_DYNAMIC_DISPATCH(lamb_direction)(s, w, g, m, v, direction, n);
}
void lamb_apply(double lr_times_trust, float* w, const float* direction, std::size_t n) {
  axpy(w, -static_cast<float>(lr_times_trust), direction, n);
}

}  // namespace echelon::kernels
#endif
