#pragma once
// AlexNet (Krizhevsky, Sutskever and Hinton 2012): the original, with two groups in convolutions 2, 4 and 5 and local
// response norm, 60,965,224 weights for 1000 classes; or the narrower single tower without norm of "One weird trick"
// (Krizhevsky 2014), which torchvision has, 61,100,840.

#include "models/network.h"

namespace echelon::models {

struct AlexNetOptions {
  bool single_tower = false;
  bool small_stem = false;  // for images under 64 x 64: 5 x 5 without stride instead of 11 x 11 with stride 4
  std::int64_t hidden = 4096;
  float dropout = 0.5f;
};
Value alexnet(nn::Net& net, Value x, std::int64_t classes, const AlexNetOptions& options = {});

std::unique_ptr<Model> make_alexnet(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
