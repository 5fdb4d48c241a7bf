#pragma once
// The [optim] table of a recipe: an update rule, its learning rate and the limits on the gradient.
//
//   [optim]
//   name = "adamw"        # sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, lars, lamb, ng_sgd
//   lr = 1e-3             # each rule has a usual one
//   weight_decay = 0.1    # never applied to biases and normalisation
//   ema = 0.999           # also keep an average of the weights, each step 1 - ema of the way to the new ones; 0: none
//   stored = { format = "fixed", bits = 16, fraction = 14 }   # weights are rounded to it after each step; or flexpoint
//   clip_norm = 1.0       # of the whole gradient; clip_value for each element
//   ...                   # the rule's own: momentum, beta1, beta2, eps, rho, alpha, eta

#include "optim/rule.h"
#include "optim/update.h"

namespace echelon {

struct Optim {
  std::unique_ptr<const Rule> rule;
  double lr = 0.1;
  double ema = 0;
  Clip clip;
};

// Reads all keys of the table; problems are added to the reader's. Leaves it to the caller to call `done`.
Optim read_optim(OptionReader& options);

}  // namespace echelon
