#pragma once
// The weights of a network in slices (graph/passes/slice.h) as those of the same network without slices, and back: what
// other programs know of "up.slice0.weight" and "up.slice1.weight" is "up.weight". Pure functions.

#include <span>
#include <vector>

#include "graph/passes/slice.h"
#include "onnx/names.h"

namespace echelon::onnx {

// `slices`: how the parameters are cut (models::sliced_parameters). Others stay what they are. Weights without numbers
// stay without.
std::vector<NamedWeights> join_slices(std::span<const NamedWeights> weights, std::span<const SlicedParameter> slices);
std::vector<NamedWeights> cut_into_slices(std::span<const NamedWeights> whole, std::span<const SlicedParameter> slices);

}  // namespace echelon::onnx
