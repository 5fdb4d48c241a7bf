// Cross-entropy over rows of logits; the losses per element are in loss.cpp.
#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss/cross_entropy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/loss/loss.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

// dlogits is null when only the loss is wanted.
HWY_FLATTEN ClassLoss rows_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows,
                                         std::size_t cols, float smoothing, float scale, float* dlogits,
                                         float* row_loss) {
  ClassLoss result;
  const double other = static_cast<double>(smoothing) / static_cast<double>(cols);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * cols;
    float* dx = dlogits == nullptr ? nullptr : dlogits + r * cols;
    if (row_loss != nullptr) row_loss[r] = 0;
    if (targets[r] < 0) {
      if (dx != nullptr) for_each_vector(cols, [&](auto at) HWY_ATTR { at.store(hn::Zero(D()), dx); });
      continue;
    }
    const auto target = static_cast<std::size_t>(targets[r]);
    const float greatest = row_max(x, cols);
    bool correct = x[target] == greatest;
    for (std::size_t c = 0; c < target && correct; ++c) correct = x[c] != greatest;
    result.correct += correct;
    result.counted += 1;

    // What the loss needs of x, before dx may overwrite it. Everything is measured from the row's maximum.
    const double distance = static_cast<double>(x[target]) - static_cast<double>(greatest);
    double mean_distance = 0;
    if (smoothing != 0) {
      const double total = blocked_sum(cols, [&](auto at) HWY_ATTR { return at.load(x); });
      mean_distance = total / static_cast<double>(cols) - static_cast<double>(greatest);
    }
    const double total = dx != nullptr ? exp_row(x, greatest, dx, cols) : exp_row_sum(x, greatest, cols);
    const double log_sum = std::log(total);
    double loss = (1 - static_cast<double>(smoothing)) * (log_sum - distance);
    if (smoothing != 0) loss += static_cast<double>(smoothing) * (log_sum - mean_distance);
    result.loss += loss;
    if (row_loss != nullptr) row_loss[r] = static_cast<float>(loss);

    if (dx == nullptr) continue;
    const V factor = set(static_cast<float>(static_cast<double>(scale) / total));
    const V shift = set(static_cast<float>(-static_cast<double>(scale) * other));
    for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::MulAdd(at.load(dx), factor, shift), dx); });
    dx[target] -= static_cast<float>(static_cast<double>(scale) * (1 - static_cast<double>(smoothing)));
  }
  return result;
}

// The same with weights. dx = mass * softmax - shift, and less at the target.
HWY_FLATTEN ClassLoss rows_weighted_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows,
                                                  std::size_t cols, float smoothing, const RowWeighting& weighting,
                                                  float scale, float* dlogits, float* row_loss) {
  ClassLoss result;
  const float* weights = weighting.classes;
  const double other = static_cast<double>(smoothing) / static_cast<double>(cols), gamma = weighting.gamma;
  const double all_weights = smoothing == 0 ? 0
                             : weights != nullptr
                                 ? blocked_sum(cols, [&](auto at) HWY_ATTR { return at.load(weights); })
                                 : static_cast<double>(cols);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * cols;
    float* dx = dlogits == nullptr ? nullptr : dlogits + r * cols;
    if (row_loss != nullptr) row_loss[r] = 0;
    if (targets[r] < 0) {
      if (dx != nullptr) for_each_vector(cols, [&](auto at) HWY_ATTR { at.store(hn::Zero(D()), dx); });
      continue;
    }
    const auto target = static_cast<std::size_t>(targets[r]);
    const float greatest = row_max(x, cols);
    bool correct = x[target] == greatest;
    for (std::size_t c = 0; c < target && correct; ++c) correct = x[c] != greatest;
    result.correct += correct;
    result.counted += 1;

    const double distance = static_cast<double>(x[target]) - static_cast<double>(greatest);
    double all_distances = 0;  // weighted, of the logits from the greatest
    if (smoothing != 0) {
      const V top = set(greatest);
      all_distances =
          weights != nullptr
              ? blocked_sum(cols, [&](auto at) HWY_ATTR { return hn::Mul(at.load(weights), hn::Sub(at.load(x), top)); })
              : blocked_sum(cols, [&](auto at) HWY_ATTR { return hn::Sub(at.load(x), top); });
    }
    const double total = dx != nullptr ? exp_row(x, greatest, dx, cols) : exp_row_sum(x, greatest, cols);
    const double log_sum = std::log(total), below = log_sum - distance;  // -log p of the target
    const double weight = weights != nullptr ? weights[target] : 1.0;
    const double at_target = weight * (1 - static_cast<double>(smoothing));
    double loss = at_target * below, slope = 1;
    if (smoothing != 0) loss += other * (all_weights * log_sum - all_distances);
    if (gamma > 0) {
      const double rest = -std::expm1(-below), factor = std::pow(rest, gamma);
      slope = rest > 0 ? factor + gamma * std::pow(rest, gamma - 1) * std::exp(-below) * below : factor;
      loss *= factor;
    }
    result.loss += loss;
    if (row_loss != nullptr) row_loss[r] = static_cast<float>(loss);

    if (dx == nullptr) continue;
    const double step = static_cast<double>(scale) * slope;
    const V mass = set(static_cast<float>(step * (at_target + other * all_weights) / total));
    const V shift = set(static_cast<float>(-step * other));
    if (smoothing != 0 && weights != nullptr)
      for_each_vector(cols, [&](auto at) HWY_ATTR {
        at.store(hn::MulAdd(at.load(dx), mass, hn::Mul(at.load(weights), shift)), dx);
      });
    else
      for_each_vector<4>(cols, [&](auto at) HWY_ATTR { at.store(hn::MulAdd(at.load(dx), mass, shift), dx); });
    dx[target] -= static_cast<float>(step * at_target);
  }
  return result;
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(rows_cross_entropy);
HWY_EXPORT(rows_weighted_cross_entropy);

std::int64_t check_targets(const std::int32_t* targets, std::size_t rows, std::size_t classes) {
  for (std::size_t r = 0; r < rows; ++r)
    if (targets[r] >= 0 && static_cast<std::size_t>(targets[r]) >= classes) return static_cast<std::int64_t>(r);
  return -1;
}

ClassLoss cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                        float smoothing, float* row_loss) {
  return HWY_DYNAMIC_DISPATCH(rows_cross_entropy)(logits, targets, rows, cols, smoothing, 0, nullptr, row_loss);
}

ClassLoss cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                             float smoothing, float scale, float* dlogits, float* row_loss) {
  return HWY_DYNAMIC_DISPATCH(rows_cross_entropy)(logits, targets, rows, cols, smoothing, scale, dlogits, row_loss);
}

ClassLoss weighted_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                                 float smoothing, const RowWeighting& weighting, float* row_loss) {
  return HWY_DYNAMIC_DISPATCH(rows_weighted_cross_entropy)(logits, targets, rows, cols, smoothing, weighting, 0,
                                                           nullptr, row_loss);
}

ClassLoss weighted_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows,
                                      std::size_t cols, float smoothing, const RowWeighting& weighting, float scale,
                                      float* dlogits, float* row_loss) {
  return HWY_DYNAMIC_DISPATCH(rows_weighted_cross_entropy)(logits, targets, rows, cols, smoothing, weighting, scale,
                                                           dlogits, row_loss);
}

}  // namespace echelon::kernels
#endif
