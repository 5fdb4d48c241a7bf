#pragma once
// A model whose network is written in the recipe, layer by layer: nn/layer_table.h has the kinds and their keys.
//
//   [model]
//   name = "layers"
//   [[model.layers]]
//   type = "flatten"
//   [[model.layers]]
//   type = "linear"
//   out = 10
//
// If there is a target for every token of the input it is a language model, else a classifier (or a regression).

#include "models/network.h"

namespace echelon::models {

std::unique_ptr<Model> make_layers_model(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
