#pragma once
// Residual networks (He et al. 2015). Parameters are called as in torchvision: "layer1.0.conv1.weight".
//   18, 34, 50   four stages from width 64; 7 x 7 stem with pooling for large images, 3 x 3 without for small ones
//   20, 32, 44, 56, 110   the CIFAR family: three stages from width 16, and shortcuts that grow by zero channels

#include "models/network.h"

namespace echelon::models {

struct ResNetOptions {
  std::vector<int> blocks{2, 2, 2, 2};  // in each stage; every stage but the first halves the image, doubles the width
  bool bottleneck = false;              // blocks of 1x1, 3x3, 1x1 instead of 3x3, 3x3
  std::int64_t width = 64;
  bool small_stem = false;
  bool pad_shortcut = false;  // shortcuts between stages: take every second pixel and add zero channels (no weights)
};
ResNetOptions resnet_of_depth(int depth);  // BadInput if there is none
Value resnet(nn::Net& net, Value x, std::int64_t classes, const ResNetOptions& options = {});

std::unique_ptr<Model> make_resnet(int depth, OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
