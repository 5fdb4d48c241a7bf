#pragma once
// The weights that a run begins with where its recipe names a source (model.init): those of another run, of a
// checkpoint, or of any safetensors file whose tensors are named as PyTorch names them (which is how this program
// does). A tensor is taken where name and shape fit, and of a text model's rows for tokens those of the same tokens
// (run/matching_tokens.h); what was taken and what was not is said in words.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/program.h"
#include "recipe/prepare.h"
#include "world/os/disk.h"

namespace echelon {

struct InitialWeights {
  struct Tensor {
    std::string name;  // the network's
    std::vector<float> values;
    std::vector<std::int64_t> rows = {};  // of the network's tensor, where only some are loaded; empty: all
  };
  std::vector<Tensor> tensors;
  std::string source;                   // the file
  std::string sha256;                   // of all weights in it (track/weights_hash.h)
  std::vector<std::string> not_loaded;  // "fc3.weight [10, 84]: the source has [26, 84]"
  std::vector<std::string> left_over;   // the source's names that found no place

  // Over what the parameters hold: those that were loaded.
  void write(const ParameterTable& table, std::span<float> parameters) const;
};

// Reads the source of prepared.recipe.start, which must be there, and puts its hash into the recipe and a report into
// its notes. Null, and problems at the recipe's place, if the source is missing, damaged or not what the recipe's hash
// says, if a pattern fits nothing, or if nothing of it fits the network.
std::shared_ptr<const InitialWeights> load_initial_weights(Disk& disk, PreparedRun& prepared, Problems& problems);

// All weights of a network, as its flat buffer (of so many floats) has them; Failure if it has another size.
std::size_t floats_of(const models::Model& model);
std::shared_ptr<const InitialWeights> initial_weights_of(const models::Model& model, std::span<const float> weights);

}  // namespace echelon
