#include "models/networks/autoencoder.h"

#include <fmt/format.h>

#include "models/networks/image.h"

namespace echelon::models {

Value dense_autoencoder(nn::Net& net, Value x, const std::vector<std::int64_t>& hidden) {
  const Shape sample(net.shape(x).dims().subspan(1));
  const bool flat = sample.rank() == 1;
  if (!flat) x = net.flatten(x);
  for (std::size_t i = 0; i < hidden.size(); ++i)
    x = net.relu(net.named(fmt::format("encode{}", i + 1)).linear(x, hidden[i]));
  for (std::size_t i = hidden.size(); i-- > 1;)
    x = net.relu(net.named(fmt::format("decode{}", i + 1)).linear(x, hidden[i - 1]));
  x = net.named("decode1").linear(x, sample.elements());
  return flat ? x : net.reshape(x, sample);
}

Value conv_autoencoder(nn::Net& net, Value x, std::int64_t width, std::int64_t code) {
  const Shape sample(net.shape(x).dims().subspan(1));
  x = as_image(net, x);
  const std::int64_t channels = net.shape(x)[1];
  x = net.relu(net.named("encode1").conv2d(x, width, {.kernel = 3, .stride = 2, .padding = 1}));
  x = net.relu(net.named("encode2").conv2d(x, 2 * width, {.kernel = 3, .stride = 2, .padding = 1}));
  const Shape inner(net.shape(x).dims().subspan(1));
  x = net.relu(net.named("code").linear(net.flatten(x), code));
  x = net.reshape(net.relu(net.named("decode3").linear(x, inner.elements())), inner);
  x = net.relu(net.named("decode2").conv2d(net.upsample(x, 2), width, {.kernel = 3, .padding = 1}));
  x = net.named("decode1").conv2d(net.upsample(x, 2), channels, {.kernel = 3, .padding = 1});
  return sample.rank() == 3 ? x : net.reshape(x, sample);
}

std::unique_ptr<Model> make_autoencoder(OptionReader& options, const InputSpec& inputs) {
  auto hidden = options.integers("hidden", {512, 128, 32}, 1, 1 << 20);
  if (hidden.empty()) options.problem("hidden", "must name at least one layer");
  return autoencoder("autoencoder", options, inputs,
                     [hidden](nn::Net& net, Value x) { return dense_autoencoder(net, x, hidden); });
}

std::unique_ptr<Model> make_conv_autoencoder(OptionReader& options, const InputSpec& inputs) {
  const std::int64_t width = options.integer("width", 16, 1, 1 << 12), code = options.integer("code", 32, 1, 1 << 16);
  const Shape& s = inputs.input().type.shape;
  if (s.rank() >= 2 && (s[-1] % 4 != 0 || s[-2] % 4 != 0))
    options.problem("name",
                    "is conv_autoencoder, which needs sides that are multiples of 4, but images are " + to_string(s));
  return autoencoder("conv_autoencoder", options, inputs,
                     [=](nn::Net& net, Value x) { return conv_autoencoder(net, x, width, code); });
}

}  // namespace echelon::models
