#include "models/networks/layers_model.h"

#include <algorithm>

#include "base/text.h"
#include "models/causality.h"
#include "models/wrappers/left_padding.h"
#include "nn/layer_table.h"

namespace echelon::models {
namespace {

bool readable(const std::vector<nn::LayerPlan>& layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [](const nn::LayerPlan& l) { return bool(l.build) || (!l.block.empty() && readable(l.block)); });
}

// The names of `key`, which must be layers of the outermost list.
std::vector<std::string> layer_names(OptionReader& options, const std::string& key,
                                     const std::vector<nn::LayerPlan>& layers) {
  std::vector<std::string> known;
  for (const nn::LayerPlan& layer : layers)
    if (!layer.name.empty()) known.push_back(layer.name);
  const std::vector<std::string> names = options.texts(key, {});
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      options.problem(key, fmt::format("names '{}', but no layer has that name{}", name, did_you_mean(name, known)));
  return names;
}

// Outputs stand side by side, as the targets do: [samples, all their features].
Value side_by_side(nn::Net& net, const nn::BuiltLayers& built, const std::vector<std::string>& outputs) {
  std::vector<Value> parts;
  for (const std::string& name : outputs) {
    const Value part = built.named.at(name);
    parts.push_back(net.shape(part).rank() == 2 ? part : net.flatten(part));
  }
  return parts.size() == 1 ? parts[0] : net.concat(parts, 1);
}

void check_causality(OptionReader& options, const Model& model, const std::vector<nn::LayerPlan>& layers) {
  try {
    if (const auto place = sees_the_future(model, layers))
      options.problems().add(*place,
                             "behind this layer a position sees tokens that come after it, which are what it is to "
                             "predict: recurrent layers need bidirectional = false, attention causal = true; "
                             "convolutions and pooling along the text do not fit");
  } catch (const BadInput&) {  // building it for a step says what does not fit
  }
}

}  // namespace

std::unique_ptr<Model> make_layers_model(OptionReader& options, const InputSpec& inputs) {
  options.require("layers", "the network, one [[model.layers]] for each layer");
  std::vector<std::string> names;
  for (const auto& field : inputs.inputs) names.push_back(field.name);
  const std::vector<nn::LayerPlan> layers = nn::read_layers(options, "layers", names);
  const bool whole = readable(layers);
  const Type& in = inputs.input().type;
  if (names.size() == 1 && in.dtype == DType::i32 && inputs.target.type == in) {
    const bool carried = options.flag("carried", false);
    auto model = language_model("layers", options, inputs, carried, [layers, whole](nn::Net& net, Value x) {
      return whole ? nn::build_layers(net, x, layers) : x;
    });
    if (whole && !carried) check_causality(options, *model, layers);
    return model;
  }
  const std::vector<std::string> outputs = layer_names(options, "outputs", layers),
                                 auxiliary = layer_names(options, "auxiliary", layers);
  const auto weight = static_cast<float>(options.number("auxiliary_weight", 0.3, 0, 1e3));
  InputSpec described = inputs;
  described.left_padded = options.flag("left_padded", false);
  const bool sequences = names.size() == 1 && in.dtype == DType::f32 && in.shape.rank() == 2;
  if (described.left_padded && !sequences)
    options.problem("left_padded", "is for sequences [time, features] of numbers");
  auto model = classifier("layers", options, described, [=](nn::Net& net, std::span<const Value> x) {
    if (!whole) return Scores{x[0], {}, 0};
    std::map<std::string, Value> given;
    for (std::size_t i = 0; i < names.size(); ++i) given[names[i]] = x[i];
    const nn::BuiltLayers built = nn::build_layers(net, given, layers);
    Scores scores{outputs.empty() ? built.last : side_by_side(net, built, outputs), {}, weight};
    if (net.training())
      for (const std::string& name : auxiliary) scores.auxiliary.push_back(built.named.at(name));
    return scores;
  });
  if (described.left_padded && sequences && whole)
    if (const std::string refusal = left_padding_refusal(*model); !refusal.empty())
      options.problem("left_padded", refusal);
  return model;
}

}  // namespace echelon::models
