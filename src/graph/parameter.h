#pragma once
// What a graph says about the numbers that outlive a step. Pure data: nn/initialise.h fills them in, the trainer owns
// their memory, optim/ changes them.

#include <cstdint>
#include <string>

#include "tensor/shape.h"

namespace echelon {

// How a parameter starts. `fan_in` and `fan_out` are those of the layer, not of the tensor's shape.
struct Init {
  enum class Kind { constant, normal, uniform, xavier_uniform, xavier_normal, he_uniform, he_normal, orthogonal };
  Kind kind = Kind::constant;
  float value = 0;  // the constant; the standard deviation (normal); the bound (uniform); the gain (the others)
  std::int64_t fan_in = 1, fan_out = 1;

  static Init zeros() { return {Kind::constant, 0}; }
  static Init ones() { return {Kind::constant, 1}; }
};

struct Parameter {
  // A `weight` moves against the gradient that a step contributes. A `statistic` (batch norm's running mean) moves
  // towards the value that a step contributes: new = old + rate * (contributed - old).
  enum class Kind { weight, statistic };

  std::string name;  // "conv1.weight"; unique in a model
  Shape shape;
  Init init = {};
  Kind kind = Kind::weight;
  bool decays = true;   // whether weight decay applies (not to biases and normalisation)
  float rate = 0.1f;    // of a statistic
  double lr_scale = 1;  // a weight's learning rate is the run's times this
};

}  // namespace echelon
