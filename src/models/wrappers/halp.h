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

// Several replicas of it agree on one full gradient: after the steps that end the gathering, each takes the mean of all
// replicas' statistics that `is_full_gradient`.
bool is_bit_centred(const Model& model);
bool agrees_after(const Model& model, std::int64_t step);
bool is_full_gradient(const std::string& parameter);

}  // namespace echelon::models
