#pragma once
// Losses. They return sums, in double and in a fixed order; whoever knows the global count divides, and hands the same
// division to the gradient as its `scale`. Thread-safe, allocate nothing. The gradient may be written over the
// prediction (dx == x).

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

struct ClassLoss {
  double loss = 0;           // sum over the rows that count
  std::int64_t correct = 0;  // of these, rows whose first greatest logit is the target's
  std::int64_t counted = 0;  // rows with target >= 0
};

// The index of the first target >= classes, or -1. A negative target marks a row that does not count.
std::int64_t check_targets(const std::int32_t* targets, std::size_t rows, std::size_t classes);

// Cross-entropy of softmax(logits[rows, cols]) against the distribution (1 - smoothing) * onehot(target) +
// smoothing / cols. Targets must have passed check_targets. `row_loss` (may be null) gets each row's loss, 0 for a row
// that does not count.
ClassLoss cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                        float smoothing, float* row_loss = nullptr);

// The same and dlogits = scale * (softmax - distribution), 0 in rows that do not count, in one go.
ClassLoss cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                             float smoothing, float scale, float* dlogits, float* row_loss = nullptr);

// How much a row weighs in a cross-entropy.
struct RowWeighting {
  const float* classes = nullptr;  // the weight of each class; null: 1
  float gamma = 0;  // focal: times (1 - p)^gamma for a target of probability p; 0 where there is smoothing
};

// Cross-entropy whose every term, -log p of class c, weighs classes[c] as in PyTorch; `counted` and the division by the
// number of rows do not know of weights.
ClassLoss weighted_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                                 float smoothing, const RowWeighting& weighting, float* row_loss = nullptr);
ClassLoss weighted_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows,
                                      std::size_t cols, float smoothing, const RowWeighting& weighting, float scale,
                                      float* dlogits, float* row_loss = nullptr);

// Pinball loss: x[rows, quantiles] holds for each target t[rows] what it lies below with the probability levels[q]. The
// sum of max(level (t - x), (level - 1) (t - x)), and its gradient, which at t == x is 0.
double quantile_loss(const float* x, const float* t, const float* levels, std::size_t rows, std::size_t quantiles);
void quantile_loss_grad(const float* x, const float* t, const float* levels, float scale, float* dx, std::size_t rows,
                        std::size_t quantiles);

// Sums over n elements of a loss of prediction x against target t, and dx = scale * dloss/dx.
double mse(const float* x, const float* t, std::size_t n);                 // (x - t)^2
double l1(const float* x, const float* t, std::size_t n);                  // |x - t|
double huber(const float* x, const float* t, float delta, std::size_t n);  // d^2/2, linear beyond delta
double bce_with_logits(const float* x, const float* t, std::size_t n);     // -t log s(x) - (1-t) log(1 - s(x))
void mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);
void l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);
void huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n);
void bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);

ClassLoss ref_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                            float smoothing, float* row_loss = nullptr);
ClassLoss ref_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                                 float smoothing, float scale, float* dlogits, float* row_loss = nullptr);
ClassLoss ref_weighted_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows,
                                          std::size_t cols, float smoothing, const RowWeighting& weighting, float scale,
                                          float* dlogits, float* row_loss = nullptr);  // dlogits may be null
double ref_quantile_loss(const float* x, const float* t, const float* levels, std::size_t rows, std::size_t quantiles);
void ref_quantile_loss_grad(const float* x, const float* t, const float* levels, float scale, float* dx,
                            std::size_t rows, std::size_t quantiles);
double ref_mse(const float* x, const float* t, std::size_t n);
double ref_l1(const float* x, const float* t, std::size_t n);
double ref_huber(const float* x, const float* t, float delta, std::size_t n);
double ref_bce_with_logits(const float* x, const float* t, std::size_t n);
void ref_mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);
void ref_l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);
void ref_huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n);
void ref_bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n);

}  // namespace echelon::kernels
