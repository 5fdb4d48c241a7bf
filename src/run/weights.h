#pragma once
// Between a model's flat buffers and the named tensors of a checkpoint. Weights are stored by name and shape, so they
// can be read by anyone; optimizer state is stored as the flat buffers it is.

#include <span>
#include <vector>

#include "base/state.h"
#include "graph/program.h"
#include "models/model.h"
#include "track/safetensors.h"

namespace echelon {

std::vector<TensorView> weight_views(const ParameterTable& table, std::span<const float> parameters);
std::vector<TensorView> state_views(const std::vector<StateSpan>& state);

// BadInput naming what is missing, left over or of another shape; then nothing has been changed. Weights must be
// finite numbers.
void load_weights(SafetensorsFile& file, const ParameterTable& table, std::span<float> parameters);
// The average that optim.ema kept in a checkpoint's state (optim/rules/ema.cpp), over the weights; statistics stay as
// they are, and so do weights that `model` does not train. BadInput if it kept none.
void load_average(SafetensorsFile& state, const ParameterTable& table, const models::Model& model,
                  std::span<float> parameters);
void load_state(SafetensorsFile& file, const std::vector<StateSpan>& state);

}  // namespace echelon
