#pragma once
// In what two checkpoints differ: tensors that only one has or that have other shapes (architecture), and by how much
// the weights of the others are apart. Reads both files; BadInput for what is no checkpoint.

#include <string>
#include <vector>

#include "base/json.h"
#include "track/checkpoint.h"

namespace echelon {

struct TensorDifference {
  std::string name;
  std::string first, second;  // shapes: "[6, 1, 5, 5]"; empty where it is absent
  bool same_bits = false;
  double distance = 0;  // length of the difference over the length of the first; where the shapes are equal
  double cosine = 1;    // of the angle between them
};

struct ModelDifference {
  std::vector<TensorDifference> tensors;  // all, by name
  bool same_architecture = true;
  bool same_weights = true;
  double distance = 0;  // of all weights together
};

ModelDifference compare_weights(SafetensorsFile& first, SafetensorsFile& second);
Json to_json(const ModelDifference& difference);

}  // namespace echelon
