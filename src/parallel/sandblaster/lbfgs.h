#pragma once
// L-BFGS (Liu and Nocedal 1989) with a line search, on vectors that may lie anywhere: all that it asks of them are dot
// products, sums and copies (parallel/sandblaster/server_vectors.h has them on servers). Deterministic; one thread.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/state.h"

namespace echelon {

struct LbfgsSettings {
  int history = 10;            // pairs of steps and changes of the gradient that are kept
  int searches = 20;           // evaluations of a step at most
  double c1 = 1e-4, c2 = 0.9;  // Armijo's and Wolfe's
};

// Vectors by number.
class LbfgsVectors {
 public:
  virtual ~LbfgsVectors() = default;
  virtual double dot(int a, int b) = 0;
  virtual void axpy(int y, double factor, int x) = 0;   // y += factor x
  virtual void scale(int y, double factor, int x) = 0;  // y = factor x
};

class Lbfgs {
 public:
  enum Vector { point, gradient, direction, trial, trial_gradient, first_pair };  // then pairs
  static int vectors(const LbfgsSettings& s) { return first_pair + 2 * s.history; }
  // The loss at the vector `at`, whose gradient it leaves in `gradient`.
  using Evaluate = std::function<double(int at, int gradient)>;

  Lbfgs(const LbfgsSettings& settings, LbfgsVectors& vectors, Evaluate evaluate);

  struct Step {
    double loss = 0;      // at the new point
    int evaluations = 0;  // that it took
    double length = 0;    // of the direction; 0: nothing better was found, and the point is the old one
  };
  // `same`: the loss is the same function as in the last step, so that it need not be evaluated again at the point.
  Step iterate(bool same);

  std::vector<StateSpan> state();  // besides the vectors

 private:
  int s_of(std::int64_t pair) const { return first_pair + 2 * static_cast<int>(pair % settings_.history); }
  int y_of(std::int64_t pair) const { return s_of(pair) + 1; }
  double descend();  // makes the direction; its slope

  LbfgsSettings settings_;
  LbfgsVectors& vectors_;
  Evaluate evaluate_;
  std::int64_t known_ = 0, pairs_ = 0,
               first_ = 0;  // whether the loss at the point is; pairs so far, and the oldest kept
  double loss_ = 0;
  std::vector<double> products_;  // of each pair: s y, and y y
};

}  // namespace echelon
