#include <algorithm>
#include <cmath>

#include "kernels/loss/loss.h"

namespace echelon::kernels {
namespace {

template <typename Term>
double sum_of(std::size_t n, Term term) {
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) total += term(i);
  return total;
}

double sign(double d) { return d > 0 ? 1 : d < 0 ? -1 : 0; }

}  // namespace

ClassLoss ref_cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                            float smoothing, float* row_loss) {
  return ref_cross_entropy_grad(logits, targets, rows, cols, smoothing, 0, nullptr, row_loss);
}

ClassLoss ref_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                                 float smoothing, float scale, float* dlogits, float* row_loss) {
  ClassLoss result;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * cols;
    float* dx = dlogits == nullptr ? nullptr : dlogits + r * cols;
    if (row_loss != nullptr) row_loss[r] = 0;
    if (targets[r] < 0) {
      if (dx != nullptr) std::fill_n(dx, cols, 0.0f);
      continue;
    }
    const auto target = static_cast<std::size_t>(targets[r]);
    const double greatest = *std::max_element(x, x + cols);
    result.correct += std::max_element(x, x + cols) == x + target;
    result.counted += 1;

    const double log_sum = greatest + std::log(sum_of(cols, [&](std::size_t c) { return std::exp(x[c] - greatest); }));
    const double other = static_cast<double>(smoothing) / static_cast<double>(cols);
    const auto share = [&](std::size_t c) { return other + (c == target ? 1.0 - smoothing : 0.0); };
    const double loss = sum_of(cols, [&](std::size_t c) { return share(c) > 0 ? share(c) * (log_sum - x[c]) : 0; });
    result.loss += loss;
    if (row_loss != nullptr) row_loss[r] = static_cast<float>(loss);
    if (dx != nullptr)
      for (std::size_t c = 0; c < cols; ++c) dx[c] = static_cast<float>(scale * (std::exp(x[c] - log_sum) - share(c)));
  }
  return result;
}

ClassLoss ref_weighted_cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows,
                                          std::size_t cols, float smoothing, const RowWeighting& weighting, float scale,
                                          float* dlogits, float* row_loss) {
  ClassLoss result;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* x = logits + r * cols;
    float* dx = dlogits == nullptr ? nullptr : dlogits + r * cols;
    if (row_loss != nullptr) row_loss[r] = 0;
    if (targets[r] < 0) {
      if (dx != nullptr) std::fill_n(dx, cols, 0.0f);
      continue;
    }
    const auto target = static_cast<std::size_t>(targets[r]);
    const double greatest = *std::max_element(x, x + cols);
    result.correct += std::max_element(x, x + cols) == x + target;
    result.counted += 1;

    const double log_sum = greatest + std::log(sum_of(cols, [&](std::size_t c) { return std::exp(x[c] - greatest); }));
    const auto log_p = [&](std::size_t c) { return x[c] - log_sum; };
    const auto weight = [&](std::size_t c) { return weighting.classes == nullptr ? 1.0 : weighting.classes[c]; };
    const auto share = [&](std::size_t c) {
      return weight(c) *
             (static_cast<double>(smoothing) / static_cast<double>(cols) + (c == target ? 1.0 - smoothing : 0.0));
    };
    // The focal factor f(p) and the derivative of f(p) * log p with respect to log p, divided by it.
    const double p = std::exp(log_p(target)), rest = -std::expm1(log_p(target)), gamma = weighting.gamma;
    const double factor = gamma > 0 ? std::pow(rest, gamma) : 1;
    const double slope =
        gamma > 0 && rest > 0 ? factor - gamma * std::pow(rest, gamma - 1) * p * log_p(target) : factor;
    const double loss = factor * sum_of(cols, [&](std::size_t c) { return share(c) > 0 ? -share(c) * log_p(c) : 0; });
    result.loss += loss;
    if (row_loss != nullptr) row_loss[r] = static_cast<float>(loss);
    const double all = sum_of(cols, share);
    if (dx != nullptr)
      for (std::size_t c = 0; c < cols; ++c)
        dx[c] = static_cast<float>(scale * slope * (all * std::exp(log_p(c)) - share(c)));
  }
  return result;
}

double ref_quantile_loss(const float* x, const float* t, const float* levels, std::size_t rows, std::size_t quantiles) {
  return sum_of(rows * quantiles, [&](std::size_t i) {
    const double d = static_cast<double>(t[i / quantiles]) - x[i], level = levels[i % quantiles];
    return std::max(level * d, (level - 1) * d);
  });
}

void ref_quantile_loss_grad(const float* x, const float* t, const float* levels, float scale, float* dx,
                            std::size_t rows, std::size_t quantiles) {
  for (std::size_t i = 0; i < rows * quantiles; ++i) {
    const double d = static_cast<double>(t[i / quantiles]) - x[i], level = levels[i % quantiles];
    dx[i] = static_cast<float>(scale * (d > 0 ? -level : d < 0 ? 1 - level : 0));
  }
}

double ref_mse(const float* x, const float* t, std::size_t n) {
  return sum_of(n, [&](std::size_t i) { return std::pow(static_cast<double>(x[i]) - t[i], 2); });
}

double ref_l1(const float* x, const float* t, std::size_t n) {
  return sum_of(n, [&](std::size_t i) { return std::fabs(static_cast<double>(x[i]) - t[i]); });
}

double ref_huber(const float* x, const float* t, float delta, std::size_t n) {
  return sum_of(n, [&](std::size_t i) {
    const double d = std::fabs(static_cast<double>(x[i]) - t[i]);
    return d <= delta ? d * d / 2 : delta * (d - delta / 2.0);
  });
}

double ref_bce_with_logits(const float* x, const float* t, std::size_t n) {
  return sum_of(n, [&](std::size_t i) {
    const double logit = x[i];
    return std::max(logit, 0.0) - logit * t[i] + std::log1p(std::exp(-std::fabs(logit)));
  });
}

void ref_mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = static_cast<float>(scale * 2.0 * (static_cast<double>(x[i]) - t[i]));
}

void ref_l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = static_cast<float>(scale * sign(static_cast<double>(x[i]) - t[i]));
}

void ref_huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - t[i];
    dx[i] = static_cast<float>(scale * std::clamp<double>(d, -delta, delta));
  }
}

void ref_bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    dx[i] = static_cast<float>(scale * (1 / (1 + std::exp(-static_cast<double>(x[i]))) - t[i]));
}

}  // namespace echelon::kernels
