#include "models/networks/mlp.h"

#include <fmt/format.h>

namespace echelon::models {

Value mlp(nn::Net& net, Value x, std::int64_t out, const MlpOptions& o) {
  if (net.shape(x).rank() != 2) x = net.flatten(x);
  int index = 1;
  for (std::int64_t width : o.hidden) {
    x = net.named(fmt::format("fc{}", index++)).linear(x, width);
    if (o.batch_norm) x = net.batch_norm(x);
    x = net.relu(x);
    if (o.dropout > 0) x = net.dropout(x, o.dropout);
  }
  return net.named(fmt::format("fc{}", index)).linear(x, out);
}

MlpOptions read_mlp(OptionReader& options, const std::vector<std::int64_t>& usual) {
  const MlpOptions o{.hidden = options.integers("hidden", usual, 1, 1 << 20),
                     .dropout = static_cast<float>(options.number("dropout", 0, 0, 0.999)),
                     .batch_norm = options.flag("batch_norm", false)};
  if (constexpr std::size_t most_layers = 1024; o.hidden.size() > most_layers)
    options.problem("hidden", fmt::format("has {} layers; at most {} are possible", o.hidden.size(), most_layers));
  return o;
}

std::unique_ptr<Model> make_mlp(OptionReader& options, const InputSpec& inputs) {
  const MlpOptions o = read_mlp(options, {1024, 1024});
  return classifier("mlp", options, inputs,
                    [o, out = outputs_of(inputs)](nn::Net& net, Value x) { return mlp(net, x, out, o); });
}

}  // namespace echelon::models
