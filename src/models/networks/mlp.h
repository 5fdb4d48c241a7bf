#pragma once
// A multi-layer perceptron: linear layers with ReLU between them, on flattened samples.

#include "models/network.h"

namespace echelon::models {

struct MlpOptions {
  std::vector<std::int64_t> hidden{1024, 1024};
  float dropout = 0;
  bool batch_norm = false;
};
Value mlp(nn::Net& net, Value x, std::int64_t out, const MlpOptions& options = {});

// Reads `hidden` (if not said: `usual`), `dropout` and `batch_norm`.
MlpOptions read_mlp(OptionReader& options, const std::vector<std::int64_t>& usual);

std::unique_ptr<Model> make_mlp(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
