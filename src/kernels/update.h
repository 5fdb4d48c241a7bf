#pragma once
// The update rules on an element range: w are the weights, g the gradient, the others the rule's state (zero before
// the first step). One pass over memory each. What they compute is what torch.optim computes with the same settings;
// g is first multiplied by grad_scale (clipping by norm, division by a count; 1 changes nothing), then
// weight_decay * w is added to it, except in adamw and lamb where decay acts on the weights themselves.
//
// Each element on its own, no fused multiply-add: a range may be split anywhere over cores, and every machine gives
// the same bits. Settings are double because 1 - 0.999 is not what float makes of it. Thread-safe on distinct ranges,
// allocates nothing.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

struct SgdSettings {
  double lr = 0.01, weight_decay = 0, momentum = 0, grad_scale = 1;
};
void sgd(const SgdSettings& s, float* w, const float* g, std::size_t n);                        // momentum unused
void momentum(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n);  // dampening 0
void nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n);

// Layer-wise scaled momentum (You et al. 2017): the decayed gradient is multiplied by `trust`, the layer's
// eta * |w| / (|g| + weight_decay * |w|), before it enters the velocity.
void lars(const SgdSettings& s, double trust, float* w, const float* g, float* velocity, std::size_t n);

struct AdagradSettings {
  double lr = 0.01, eps = 1e-10, weight_decay = 0, grad_scale = 1;
};
void adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n);

struct AdadeltaSettings {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0, grad_scale = 1;
};
void adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg, std::size_t n);

struct RmspropSettings {
  double lr = 0.01, alpha = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0, grad_scale = 1;
};
// `velocity` is used, and may only be null, when momentum == 0.
void rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity, std::size_t n);

struct AdamSettings {
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, grad_scale = 1;
  std::int64_t step = 1;  // counted from 1, for the bias corrections
};
void adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n);
void adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n);

// LAMB (You et al. 2019) in two passes: the direction m^ / (sqrt(v^) + eps) + weight_decay * w (may overwrite g); then,
// with the norms of w and direction known, apply: w -= lr * trust * direction, trust = |w| / |direction|.
void lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v, float* direction,
                    std::size_t n);
void lamb_apply(double lr_times_trust, float* w, const float* direction, std::size_t n);

void ref_sgd(const SgdSettings& s, float* w, const float* g, std::size_t n);
void ref_momentum(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n);
void ref_nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n);
void ref_lars(const SgdSettings& s, double trust, float* w, const float* g, float* velocity, std::size_t n);
void ref_adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n);
void ref_adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg,
                  std::size_t n);
void ref_rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity, std::size_t n);
void ref_adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n);
void ref_adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n);
void ref_lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v, float* direction,
                        std::size_t n);
void ref_lamb_apply(double lr_times_trust, float* w, const float* direction, std::size_t n);

}  // namespace echelon::kernels
