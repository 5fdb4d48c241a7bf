#pragma once
// What a network is trained to make small, as a recipe's [loss] says it.
//
//   name             cross_entropy (one class of several), binary (each target 0 or 1 by itself: multi-label), mse,
//   mae,
//                    huber, quantile (numbers); default: cross_entropy for classes, mse for numbers
//   label_smoothing  cross_entropy: so much of the target's share goes to all classes (0); in training only
//   class_weights    cross_entropy: "balanced" (samples / (classes * samples of the class)), or one number a class
//   focal_gamma      cross_entropy: times (1 - p)^gamma: what is predicted well counts less (0)
//   delta            huber: beyond this distance it grows linearly (1)
//   quantiles        quantile: the levels, [0.1, 0.5, 0.9]

#include <string>
#include <vector>

#include "base/options.h"

namespace echelon::models {

struct LossSpec {
  std::string name = {};  // empty: what suits the targets
  float label_smoothing = 0, focal_gamma = 0, delta = 1;
  bool balanced = false;                  // class_weights are still to be computed from the data
  std::vector<float> class_weights = {};  // empty: all 1
  std::vector<float> quantiles = {};
};

std::vector<std::string> loss_names();

// Which of the quantiles is nearest to one half: the one that stands for the prediction.
std::size_t middle_quantile(const std::vector<float>& quantiles);

// Reads a [loss] table; problems are added to the reader's.
LossSpec read_loss(OptionReader& table);

// The weights that make every class count the same: samples / (classes * samples of the class); 0 for a class without
// samples.
std::vector<float> balanced_weights(const std::vector<std::int64_t>& samples_by_class);

}  // namespace echelon::models
