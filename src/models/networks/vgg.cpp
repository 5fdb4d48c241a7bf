#include "models/networks/vgg.h"

#include <array>

#include "base/error.h"
#include "models/networks/image.h"

namespace echelon::models {
namespace {

// Convolutions in each of the five stages.
std::array<int, 5> stages(int depth) {
  switch (depth) {
    case 11: return {1, 1, 2, 2, 2};
    case 13: return {2, 2, 2, 2, 2};
    case 16: return {2, 2, 3, 3, 3};
    case 19: return {2, 2, 4, 4, 4};
    default: bad_input("there is no VGG with {} layers; there are 11, 13, 16, 19", depth);
  }
}

}  // namespace

Value vgg(nn::Net& net, Value x, std::int64_t classes, const VggOptions& o) {
  x = as_image(net, x);
  const auto counts = stages(o.depth);
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const auto scope = net.block(fmt::format("stage{}", stage + 1));
    const std::int64_t width = o.width << std::min<std::size_t>(stage, 3);
    for (int i = 0; i < counts[stage]; ++i) {
      x = net.conv2d(x, width, {.kernel = 3, .padding = 1, .init = nn::he_normal()});
      if (o.batch_norm) x = net.batch_norm(x);
      x = net.relu(x);
    }
    x = net.max_pool(x, 2);
  }
  x = net.flatten(x);
  for (const char* name : {"fc1", "fc2"})
    x = net.dropout(net.relu(net.named(name).linear(x, o.hidden, {.init = nn::he_normal()})), o.dropout);
  return net.named("fc3").linear(x, classes, {.init = nn::normal(0.01f)});
}

std::unique_ptr<Model> make_vgg(int depth, OptionReader& options, const InputSpec& inputs) {
  const VggOptions o{.depth = depth,
                     .width = options.integer("width", 64, 1, 1 << 12),
                     .batch_norm = options.flag("batch_norm", false),
                     .hidden = options.integer("hidden", 4096, 1, 1 << 20),
                     .dropout = static_cast<float>(options.number("dropout", 0.5, 0, 0.999))};
  return classifier(fmt::format("vgg{}", depth), options, inputs,
                    [o, out = outputs_of(inputs)](nn::Net& net, Value x) { return vgg(net, x, out, o); });
}

}  // namespace echelon::models
