#include <cmath>

#include "base/error.h"
#include "kernels/update.h"

namespace echelon::kernels {
namespace {

float f(double x) { return static_cast<float>(x); }

// The gradient as every rule but adamw and lamb sees it.
template <typename Settings>
float decayed(const Settings& s, float w, float g) {
  return g * f(s.grad_scale) + f(s.weight_decay) * w;
}

// Moves Adam's moments and returns the bias-corrected direction m^ / (sqrt(v^) + eps), times `size`.
float adam_direction(const AdamSettings& s, double size, float g, float& m, float& v) {
  invariant(s.step >= 1, "Adam's step is counted from 1");
  const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(s.step));
  const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(s.step));
  m = m + f(1 - s.beta1) * (g - m);
  v = f(s.beta2) * v + f(1 - s.beta2) * (g * g);
  return f(size / correction1) * (m / (std::sqrt(v) * f(1 / std::sqrt(correction2)) + f(s.eps)));
}

}  // namespace

void ref_sgd(const SgdSettings& s, float* w, const float* g, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= f(s.lr) * decayed(s, w[i], g[i]);
}

void ref_momentum(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  ref_lars(s, 1, w, g, velocity, n);
}

void ref_nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = decayed(s, w[i], g[i]);
    velocity[i] = f(s.momentum) * velocity[i] + gradient;
    w[i] -= f(s.lr) * (gradient + f(s.momentum) * velocity[i]);
  }
}

void ref_lars(const SgdSettings& s, double trust, float* w, const float* g, float* velocity, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    velocity[i] = f(s.momentum) * velocity[i] + f(trust) * decayed(s, w[i], g[i]);
    w[i] -= f(s.lr) * velocity[i];
  }
}

void ref_adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = decayed(s, w[i], g[i]);
    square_sum[i] += gradient * gradient;
    w[i] -= f(s.lr) * (gradient / (std::sqrt(square_sum[i]) + f(s.eps)));
  }
}

void ref_adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg,
                  std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = decayed(s, w[i], g[i]);
    square_avg[i] = f(s.rho) * square_avg[i] + f(1 - s.rho) * (gradient * gradient);
    const float delta = std::sqrt(delta_avg[i] + f(s.eps)) / std::sqrt(square_avg[i] + f(s.eps)) * gradient;
    delta_avg[i] = f(s.rho) * delta_avg[i] + f(1 - s.rho) * (delta * delta);
    w[i] -= f(s.lr) * delta;
  }
}

void ref_rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity,
                 std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = decayed(s, w[i], g[i]);
    square_avg[i] = f(s.alpha) * square_avg[i] + f(1 - s.alpha) * (gradient * gradient);
    float direction = gradient / (std::sqrt(square_avg[i]) + f(s.eps));
    if (s.momentum != 0) direction = velocity[i] = f(s.momentum) * velocity[i] + direction;
    w[i] -= f(s.lr) * direction;
  }
}

void ref_adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= adam_direction(s, s.lr, decayed(s, w[i], g[i]), m[i], v[i]);
}

void ref_adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    w[i] = w[i] * f(1 - s.lr * s.weight_decay) - adam_direction(s, s.lr, g[i] * f(s.grad_scale), m[i], v[i]);
}

void ref_lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v, float* direction,
                        std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    direction[i] = adam_direction(s, 1, g[i] * f(s.grad_scale), m[i], v[i]) + f(s.weight_decay) * w[i];
}

void ref_lamb_apply(double lr_times_trust, float* w, const float* direction, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) w[i] -= f(lr_times_trust) * direction[i];
}

}  // namespace echelon::kernels
