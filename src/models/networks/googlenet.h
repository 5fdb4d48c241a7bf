#pragma once
// GoogLeNet (Szegedy et al. 2014): nine inception blocks and global pooling, 6,998,552 weights for 1000 classes;
// 13,378,280 with its two auxiliary classifiers, which add to the loss (weight 0.3) while training. With `batch_norm`,
// every convolution is normalised instead of the two local response norms, as in its successor.

#include "models/network.h"

namespace echelon::models {

struct GoogLeNetOptions {
  bool auxiliary = false;
  bool batch_norm = false;
  bool small_stem = false;  // for images under 64 x 64: one 3 x 3 convolution without stride
  float dropout = 0.4f;
};
Scores googlenet(nn::Net& net, Value x, std::int64_t classes, const GoogLeNetOptions& options = {});

std::unique_ptr<Model> make_googlenet(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
