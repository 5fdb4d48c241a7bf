#pragma once
// Densely connected networks with bottlenecks and compression (DenseNet-BC, Huang et al. 2016).
//   121          growth 32, four blocks, for 224 x 224 (7,978,856 weights for 1000 classes)
//   40, 100      the CIFAR family: growth 12, three blocks, 3 x 3 stem

#include "models/network.h"

namespace echelon::models {

struct DenseNetOptions {
  std::vector<int> blocks{6, 12, 24, 16};
  std::int64_t growth = 32;
  std::int64_t first = 64;  // channels of the stem
  bool small_stem = false;
  float dropout = 0;
};
DenseNetOptions densenet_of_depth(int depth);  // BadInput if there is none
Value densenet(nn::Net& net, Value x, std::int64_t classes, const DenseNetOptions& options = {});

std::unique_ptr<Model> make_densenet(int depth, OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
