#include "models/networks/resnet.h"

#include "base/error.h"
#include "graph/ops/elementwise.h"
#include "models/networks/image.h"

namespace echelon::models {
namespace {

Value plain_conv(nn::Net& net, const std::string& name, Value x, std::int64_t out, int kernel, int stride) {
  return net.named(name).conv2d(
      x, out, {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false, .init = nn::he_normal()});
}

// The way around a block, where it cannot be the input itself.
Value shortcut(nn::Net& net, Value x, std::int64_t out, int stride, bool pad) {
  const std::int64_t in = net.shape(x)[1];
  const auto scope = net.block("downsample");
  if (!pad) return net.named("1").batch_norm(plain_conv(net, "0", x, out, 1, stride));
  if (stride > 1) x = net.named("skip").avg_pool(x, 1, {.stride = stride});
  std::vector<Value> parts{x};
  for (std::int64_t c = in; c < out; c += in) parts.push_back(ops::scale(net.graph(), x, 0));
  return net.named("pad").concat(parts);
}

Value block(nn::Net& net, Value x, std::int64_t width, int stride, const ResNetOptions& o) {
  const std::int64_t out = o.bottleneck ? 4 * width : width;
  Value y = x;
  if (o.bottleneck) {
    y = net.relu(net.named("bn1").batch_norm(plain_conv(net, "conv1", y, width, 1, 1)));
    y = net.relu(net.named("bn2").batch_norm(plain_conv(net, "conv2", y, width, 3, stride)));
    y = net.named("bn3").batch_norm(plain_conv(net, "conv3", y, out, 1, 1));
  } else {
    y = net.relu(net.named("bn1").batch_norm(plain_conv(net, "conv1", y, width, 3, stride)));
    y = net.named("bn2").batch_norm(plain_conv(net, "conv2", y, width, 3, 1));
  }
  if (stride > 1 || net.shape(x)[1] != out) x = shortcut(net, x, out, stride, o.pad_shortcut);
  return net.relu(net.add(y, x));
}

}  // namespace

ResNetOptions resnet_of_depth(int depth) {
  switch (depth) {
    case 18: return {.blocks = {2, 2, 2, 2}};
    case 34: return {.blocks = {3, 4, 6, 3}};
    case 50: return {.blocks = {3, 4, 6, 3}, .bottleneck = true};
    case 20:
    case 32:
    case 44:
    case 56:
    case 110: {
      const int n = (depth - 2) / 6;
      return {.blocks = {n, n, n}, .width = 16, .small_stem = true, .pad_shortcut = true};
    }
    default: bad_input("there is no ResNet with {} layers; there are 18, 20, 32, 34, 44, 50, 56, 110", depth);
  }
}

Value resnet(nn::Net& net, Value x, std::int64_t classes, const ResNetOptions& o) {
  x = as_image(net, x);
  x = plain_conv(net, "conv1", x, o.width, o.small_stem ? 3 : 7, o.small_stem ? 1 : 2);
  x = net.relu(net.named("bn1").batch_norm(x));
  if (!o.small_stem) x = net.max_pool(x, 3, {.stride = 2, .padding = 1});
  std::int64_t width = o.width;
  for (std::size_t stage = 0; stage < o.blocks.size(); ++stage, width *= 2)
    for (int i = 0; i < o.blocks[stage]; ++i) {
      const auto scope = net.block(fmt::format("layer{}.{}", stage + 1, i));
      x = block(net, x, width, stage > 0 && i == 0 ? 2 : 1, o);
    }
  return net.named("fc").linear(net.global_avg_pool(x), classes);
}

std::unique_ptr<Model> make_resnet(int depth, OptionReader& options, const InputSpec& inputs) {
  ResNetOptions o = resnet_of_depth(depth);
  if (!o.small_stem) o.small_stem = read_small_stem(options, inputs);
  o.width = options.integer("width", o.width, 1, 1 << 16);
  o.pad_shortcut = options.choice("shortcut", o.pad_shortcut ? "pad" : "project", {"pad", "project"}) == "pad";
  return classifier(fmt::format("resnet{}", depth), options, inputs,
                    [o, out = outputs_of(inputs)](nn::Net& net, Value x) { return resnet(net, x, out, o); });
}

}  // namespace echelon::models
