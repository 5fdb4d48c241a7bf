#pragma once
// Any model with weights and activations of few bits: the table [model.quantise] of a recipe.
//
//   [model.quantise]
//   scheme = "dorefa"       # dorefa, bnn, ternary, flexpoint, fixed, halp
//   weights_bits = 1        # 32: left as they are
//   activations_bits = 2
//   errors_bits = 32        # dorefa, flexpoint, fixed: of the errors that flow backward; 32: left as they are
//   ends = false            # whether the first and the last layer are quantised too
//
// The model's own graphs are taken, quantised (graph/passes/quantise.h) and differentiated again; the weights that the
// optimizer moves and a checkpoint holds stay float32, unless [optim] stored says otherwise (optim/optim.h).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "graph/ops/bit_centring.h"
#include "models/model.h"

namespace echelon::models {

struct Quantisation {
  std::string scheme;
  int weights_bits = 32, activations_bits = 32;
  int weights_fraction = 14, activations_fraction = 10;  // fixed: bits behind the point
  int errors_bits = 32, errors_fraction = 18;            // the same of errors
  bool predict = false;                                  // flexpoint: exponents come from earlier steps (Autoflex)
  bool keep_scale = true;                                // dorefa, bnn: do not rely on batch norm
  bool batch_norm = false;                               // bnn: put one before every sign that has none
  bool ends = false;
  ops::BitCentring centring = {};  // halp, besides its bits (models/wrappers/halp.h)
};

std::vector<std::string> quantisation_schemes();

// Reads the table `quantise` of a model's options, if it is there. Problems are added to the reader's.
std::optional<Quantisation> read_quantisation(OptionReader& model);

// BadInput if it would quantise nothing.
std::unique_ptr<Model> quantised(std::unique_ptr<Model> model, const Quantisation& how);

}  // namespace echelon::models
