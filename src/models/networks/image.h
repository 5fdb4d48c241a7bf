#pragma once
// What the image networks share.

#include <algorithm>
#include <string>

#include "base/options.h"
#include "models/model.h"
#include "nn/layers.h"

namespace echelon::models {

// [N, H, W] as [N, 1, H, W]; everything else as it is.
inline Value as_image(nn::Net& net, Value x) {
  const Shape s = net.shape(x);
  return s.rank() == 3 ? net.reshape(x, {1, s[1], s[2]}) : x;
}

// Whether a network made for 224 x 224 should begin gently, without its first strides. Reads `stem`: "imagenet",
// "small", or "auto", which is small for images with a side under 64.
inline bool read_small_stem(OptionReader& options, const InputSpec& inputs) {
  const std::string stem = options.choice("stem", "auto", {"auto", "imagenet", "small"});
  const Shape& image = inputs.input().type.shape;
  return stem == "small" || (stem == "auto" && image.rank() >= 2 && std::min(image[-1], image[-2]) < 64);
}

}  // namespace echelon::models
