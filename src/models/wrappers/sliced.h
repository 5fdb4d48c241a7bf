#pragma once
// Any model in slices: the key `slices` of a recipe's [model].
//
//   [model]
//   name = "gpt"
//   slices = 4      # layers become four equal parts; any divisor of it may be the degree of tensor parallelism
//   slice_images = "strips"   # convolutions and pooling by rows of the image; "columns", "channels" (default)
//   slice_halos = "compute"   # edges of strips are computed twice; "exchange" (default): borrowed from neighbours
//   slice_linear = "grid"     # matrices in both dimensions; "lines" (default): by outputs or inputs
//
// The model's own graphs are taken, cut (graph/passes/slice.h) and differentiated again. The number of slices belongs
// to the result, like the number of shards: a plan says only where they are computed.

#include <memory>
#include <string>
#include <vector>

#include "graph/passes/slice.h"
#include "models/model.h"

namespace echelon::models {

// BadInput, naming every layer, if the slices do not divide a layer's heads, channels or outputs, with the nearest
// number that works. (The text goes on where the key `slices` stands.)
std::unique_ptr<Model> sliced(std::unique_ptr<Model> model, Slicing how);

// How the parameters of a model that is in slices are cut; empty: it is not.
std::vector<SlicedParameter> sliced_parameters(const Model& model);

}  // namespace echelon::models
