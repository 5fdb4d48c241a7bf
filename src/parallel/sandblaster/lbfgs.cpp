#include "parallel/sandblaster/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace echelon {

Lbfgs::Lbfgs(const LbfgsSettings& settings, LbfgsVectors& vectors, Evaluate evaluate)
    : settings_(settings),
      vectors_(vectors),
      evaluate_(std::move(evaluate)),
      products_(2 * static_cast<std::size_t>(settings.history)) {}

// direction = - (the inverse Hessian that the pairs tell of) gradient: the two loops.
double Lbfgs::descend() {
  const auto sy = [&](std::int64_t pair) { return products_[2 * static_cast<std::size_t>(pair % settings_.history)]; };
  const auto yy = [&](std::int64_t pair) {
    return products_[2 * static_cast<std::size_t>(pair % settings_.history) + 1];
  };
  std::vector<double> a(static_cast<std::size_t>(pairs_ - first_));
  vectors_.scale(direction, -1, gradient);
  for (std::int64_t pair = pairs_; pair-- > first_;) {
    double& factor = a[static_cast<std::size_t>(pair - first_)];
    factor = vectors_.dot(s_of(pair), direction) / sy(pair);
    vectors_.axpy(direction, -factor, y_of(pair));
  }
  if (pairs_ > first_) vectors_.scale(direction, sy(pairs_ - 1) / yy(pairs_ - 1), direction);
  for (std::int64_t pair = first_; pair < pairs_; ++pair) {
    const double b = vectors_.dot(y_of(pair), direction) / sy(pair);
    vectors_.axpy(direction, a[static_cast<std::size_t>(pair - first_)] - b, s_of(pair));
  }
  return vectors_.dot(gradient, direction);
}

Lbfgs::Step Lbfgs::iterate(bool same) {
  Step step;
  const auto evaluated = [&](int at, int into) {
    ++step.evaluations;
    return evaluate_(at, into);
  };
  if (!same || known_ == 0) loss_ = evaluated(point, gradient);
  known_ = 1;
  step.loss = loss_;
  double slope = descend();
  if (!(slope < 0)) {  // what it remembers is of another function
    first_ = pairs_;
    slope = descend();
  }
  if (!(slope < 0)) return step;  // the gradient is zero
  double low = 0, high = std::numeric_limits<double>::infinity(), best = 0;
  double length = pairs_ > first_ ? 1 : std::min(1.0, 1 / std::sqrt(-slope));
  bool found = false;
  while (!found && step.evaluations < settings_.searches) {
    vectors_.scale(trial, 1, point);
    vectors_.axpy(trial, length, direction);
    step.loss = evaluated(trial, trial_gradient);
    best = length;
    if (!std::isfinite(step.loss) || step.loss > loss_ + settings_.c1 * length * slope)
      high = length;
    else if (vectors_.dot(trial_gradient, direction) < settings_.c2 * slope)
      low = length;
    else
      found = true;
    if (!found) length = std::isinf(high) ? 2 * length : (low + high) / 2;
  }
  if (!found && low > 0 && best != low) {  // steep still, but lower
    vectors_.scale(trial, 1, point);
    vectors_.axpy(trial, low, direction);
    step.loss = evaluated(trial, trial_gradient);
    best = low;
  }
  if (!found && low == 0) {
    first_ = pairs_;
    step.loss = loss_;
    return step;
  }
  const int s = s_of(pairs_), y = y_of(pairs_);
  vectors_.scale(s, 1, trial), vectors_.axpy(s, -1, point);
  vectors_.scale(y, 1, trial_gradient), vectors_.axpy(y, -1, gradient);
  first_ = std::max(first_, pairs_ + 1 - settings_.history);  // its place was the oldest one's
  const double sy = vectors_.dot(s, y), yy = vectors_.dot(y, y);
  if (sy > 1e-10 * yy) {
    products_[2 * static_cast<std::size_t>(pairs_ % settings_.history)] = sy;
    products_[2 * static_cast<std::size_t>(pairs_ % settings_.history) + 1] = yy;
    ++pairs_;
  }
  vectors_.scale(point, 1, trial);
  vectors_.scale(gradient, 1, trial_gradient);
  loss_ = step.loss;
  step.length = best;
  return step;
}

std::vector<StateSpan> Lbfgs::state() {
  return {as_state("known", known_), as_state("pairs", pairs_), as_state("first", first_), as_state("loss", loss_),
          as_state("products", std::span<double>(products_))};
}

}  // namespace echelon
