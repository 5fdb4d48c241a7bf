#pragma once
// VGG (Simonyan and Zisserman 2014), configurations A, B, D and E: 11, 13, 16 and 19 layers with weights. Five poolings
// halve the image, so it must have at least 32 pixels a side; the first linear layer takes whatever is left.

#include "models/network.h"

namespace echelon::models {

struct VggOptions {
  int depth = 16;
  std::int64_t width = 64;  // of the first stage; the next ones double it, up to eight times
  bool batch_norm = false;
  std::int64_t hidden = 4096;
  float dropout = 0.5f;
};
Value vgg(nn::Net& net, Value x, std::int64_t classes, const VggOptions& options = {});

std::unique_ptr<Model> make_vgg(int depth, OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
