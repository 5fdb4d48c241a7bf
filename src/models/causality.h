#pragma once
// Whether a network for text that was written out in a recipe sees the tokens that it is to predict.

#include <optional>
#include <span>

#include "models/model.h"
#include "nn/layer_table.h"

namespace echelon::models {

// The place of the first layer behind which a position of `model` (made of these layers) depends on a token that comes
// after it; none if the scores of a position depend on what came before alone. Found by running the network twice, with
// weights that are not trained: another last token must not change the scores of the others. Not judged are mixtures of
// experts (whether there is room in an expert depends on all tokens) and networks that take long to run once.
std::optional<Place> sees_the_future(const Model& model, std::span<const nn::LayerPlan> layers);

}  // namespace echelon::models
