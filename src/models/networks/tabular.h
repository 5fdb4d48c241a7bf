#pragma once
// A network for tables: every column of categories is looked up in an embedding of its own, the numbers stand beside
// them, and a multi-layer perceptron reads the whole row.

#include "models/networks/mlp.h"

namespace echelon::models {

struct TabularOptions {
  MlpOptions mlp;
  std::int64_t embedding = 0;  // features for a category; 0: embedding_width of each column
};

// Features for a column of so many different values: about four times their fourth root, never more than the values.
std::int64_t embedding_width(std::int64_t categories);

// `inputs`: numbers of any shape, and ids i32[samples, k] whose fields in `spec` say how many there are of each.
Value tabular(nn::Net& net, std::span<const Value> inputs, const InputSpec& spec, std::int64_t out,
              const TabularOptions& options = {});

std::unique_ptr<Model> make_tabular(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
