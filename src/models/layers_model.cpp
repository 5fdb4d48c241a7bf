#include "models/layers_model.h"

#include <algorithm>

#include "nn/layer_table.h"

namespace echelon::models {

std::unique_ptr<Model> make_layers_model(OptionReader& options, const InputSpec& inputs) {
  options.require("layers", "the network, one [[model.layers]] for each layer");
  const auto layers = nn::read_layers(options, "layers");
  const bool readable = std::all_of(layers.begin(), layers.end(), [](const auto& l) { return bool(l.build); });
  const auto network = [layers, readable](nn::Net& net, Value x) {
    return readable ? nn::build_layers(net, x, layers) : x;
  };
  const bool text = inputs.input().type.dtype == DType::i32 && inputs.target.type == inputs.input().type;
  if (!text) return classifier("layers", options, inputs, network);
  const bool carried = options.flag("carried", false);
  return language_model("layers", options, inputs, carried, network);
}

}  // namespace echelon::models
