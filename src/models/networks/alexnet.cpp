#include "models/networks/alexnet.h"

#include <fmt/format.h>

#include "models/networks/image.h"

namespace echelon::models {

Value alexnet(nn::Net& net, Value x, std::int64_t classes, const AlexNetOptions& o) {
  const int groups = o.single_tower ? 1 : 2;
  // The paper writes k + alpha * sum; the layer divides alpha by the size.
  auto norm = [&](Value v) { return o.single_tower ? v : net.local_response_norm(v, {.alpha = 5e-4f, .k = 2}); };
  auto conv = [&](int number, Value v, std::int64_t out, nn::Conv2dOptions c) {
    return net.relu(net.named(fmt::format("conv{}", number)).conv2d(v, out, c));
  };
  auto fc = [&](int number, Value v, std::int64_t out) {
    return net.relu(net.named(fmt::format("fc{}", number)).linear(net.dropout(v, o.dropout), out));
  };

  x = as_image(net, x);
  const nn::Conv2dOptions stem = o.small_stem ? nn::Conv2dOptions{.kernel = 5, .padding = 2}
                                              : nn::Conv2dOptions{.kernel = 11, .stride = 4, .padding = 2};
  x = net.max_pool(norm(conv(1, x, o.single_tower ? 64 : 96, stem)), 3, {.stride = 2});
  const std::int64_t second = o.single_tower ? 192 : 256, fourth = o.single_tower ? 256 : 384;
  x = net.max_pool(norm(conv(2, x, second, {.kernel = 5, .padding = 2, .groups = groups})), 3, {.stride = 2});
  x = conv(3, x, 384, {.padding = 1});
  x = conv(4, x, fourth, {.padding = 1, .groups = groups});
  x = conv(5, x, 256, {.padding = 1, .groups = groups});
  x = net.flatten(net.max_pool(x, 3, {.stride = 2}));
  x = fc(6, x, o.hidden);
  x = fc(7, x, o.hidden);
  return net.named("fc8").linear(x, classes);
}

std::unique_ptr<Model> make_alexnet(OptionReader& options, const InputSpec& inputs) {
  const AlexNetOptions o{.single_tower = options.choice("variant", "original", {"original", "single"}) == "single",
                         .small_stem = read_small_stem(options, inputs),
                         .hidden = options.integer("hidden", 4096, 1, 1 << 20),
                         .dropout = static_cast<float>(options.number("dropout", 0.5, 0, 0.999))};
  return classifier("alexnet", options, inputs,
                    [o, out = outputs_of(inputs)](nn::Net& net, Value x) { return alexnet(net, x, out, o); });
}

}  // namespace echelon::models
