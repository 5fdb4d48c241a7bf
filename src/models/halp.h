#pragma once
// HALP for any model with one kind of training step: its network runs twice on every micro-batch, at the weights and at
// the centre (graph/ops/bit_centring.h), and the two gradients meet in SVRG's. Twice the work and three times the
// parameters; evaluation and prediction use the weights as the optimizer has them.

#include <memory>

#include "graph/ops/bit_centring.h"
#include "models/model.h"

namespace echelon::models {

// BadInput for a model whose step has several phases.
std::unique_ptr<Model> bit_centred(std::unique_ptr<Model> model, const ops::BitCentring& how);

}  // namespace echelon::models
