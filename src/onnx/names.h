#pragma once
// The names that PyTorch's networks give their parameters: torchvision's for networks of images, Hugging Face's for
// GPT-2. Most names of ours are the same already ("layer1.0.conv1.weight", "rnn.weight_ih_l0"); where they differ a
// table has the rule. Pure functions, thread-safe.

#include <span>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace echelon::onnx {

struct NamedWeights {
  std::string name;
  Shape shape;
  std::vector<float> numbers;
};

struct TorchName {
  std::string name;
  bool transposed = false;  // Hugging Face's GPT-2 stores the matrices of its linear layers as [in, out]
};

// For each parameter of a model ("vgg16", "gpt", ...), in the same order.
std::vector<TorchName> torch_names(const std::string& model, const std::vector<std::string>& names);

std::vector<NamedWeights> to_torch_names(const std::string& model, std::vector<NamedWeights> weights);
// The other way round: `wanted` are the model's own parameters (name and shape, no numbers); `given` has PyTorch's
// names. BadInput that lists what is missing and what has another shape.
std::vector<NamedWeights> from_torch_names(const std::string& model, std::vector<NamedWeights> wanted,
                                           std::span<const NamedWeights> given);

}  // namespace echelon::onnx
