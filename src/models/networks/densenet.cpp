#include "models/networks/densenet.h"

#include "base/error.h"
#include "models/networks/image.h"

namespace echelon::models {
namespace {

// Normalised and rectified, then convolved.
Value bn_relu_conv(nn::Net& net, const std::string& number, Value x, std::int64_t out, int kernel) {
  x = net.named("relu" + number).relu(net.named("norm" + number).batch_norm(x));
  return net.named("conv" + number)
      .conv2d(x, out, {.kernel = kernel, .padding = kernel / 2, .bias = false, .init = nn::he_normal()});
}

}  // namespace

DenseNetOptions densenet_of_depth(int depth) {
  switch (depth) {
    case 121: return {};
    case 40:
    case 100: {
      const int n = (depth - 4) / 6;
      return {.blocks = {n, n, n}, .growth = 12, .first = 24, .small_stem = true};
    }
    default: bad_input("there is no DenseNet with {} layers; there are 40, 100, 121", depth);
  }
}

Value densenet(nn::Net& net, Value x, std::int64_t classes, const DenseNetOptions& o) {
  x = as_image(net, x);
  const Init he = nn::he_normal();
  if (o.small_stem) {
    x = net.named("conv0").conv2d(x, o.first, {.kernel = 3, .padding = 1, .bias = false, .init = he});
  } else {
    x = net.named("conv0").conv2d(x, o.first, {.kernel = 7, .stride = 2, .padding = 3, .bias = false, .init = he});
    x = net.max_pool(net.relu(net.named("norm0").batch_norm(x)), 3, {.stride = 2, .padding = 1});
  }
  for (std::size_t b = 0; b < o.blocks.size(); ++b) {
    for (int i = 0; i < o.blocks[b]; ++i) {
      const auto scope = net.block(fmt::format("block{}.layer{}", b + 1, i + 1));
      Value y = bn_relu_conv(net, "2", bn_relu_conv(net, "1", x, 4 * o.growth, 1), o.growth, 3);
      if (o.dropout > 0) y = net.dropout(y, o.dropout);
      x = net.concat({x, y});
    }
    if (b + 1 == o.blocks.size()) break;
    const auto scope = net.block(fmt::format("transition{}", b + 1));
    x = net.avg_pool(bn_relu_conv(net, "", x, net.shape(x)[1] / 2, 1), 2);
  }
  x = net.relu(net.named("norm").batch_norm(x));
  return net.named("fc").linear(net.global_avg_pool(x), classes);
}

std::unique_ptr<Model> make_densenet(int depth, OptionReader& options, const InputSpec& inputs) {
  DenseNetOptions o = densenet_of_depth(depth);
  if (!o.small_stem) o.small_stem = read_small_stem(options, inputs);
  o.growth = options.integer("growth", o.growth, 1, 1 << 12);
  o.dropout = static_cast<float>(options.number("dropout", 0, 0, 0.999));
  return classifier(fmt::format("densenet{}", depth), options, inputs,
                    [o, out = outputs_of(inputs)](nn::Net& net, Value x) { return densenet(net, x, out, o); });
}

}  // namespace echelon::models
