#pragma once
// Synchronous training of one model on the cores of one worker. A step: every core runs its logical shards forward and
// backward, the shards' contributions are summed in the fixed tree, and the update runs over the cores by ranges of
// elements. The weights after any number of steps are the same bits for any number of cores (law 1).
//
// Owns parameters, contributions, the optimizer's state and carried values; allocates nothing in a step once every size
// of slice has occurred. One thread drives it; the cores work inside step().

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "optim/optim.h"
#include "parallel/shard_runner.h"
#include "collective/shard_tree.h"
#include "world/cores.h"

namespace echelon {

// A loss that is no number any more: the recipe asks for what cannot be trained. The weights are those from before the
// step.
class NotFinite : public BadInput {
  using BadInput::BadInput;
};

struct StepResult {
  double loss = 0;     // mean over the terms of the global batch; of the last phase
  double correct = 0;  // terms that were predicted right
  std::int64_t samples = 0, terms = 0;
  double gradient_norm = 0;  // before clipping; 0 unless something needed it
};

class Trainer {
 public:
  // `make_optim` is called once for each phase of the model's training step. `fields` are the data set's.
  Trainer(const models::Model& model, const std::function<Optim()>& make_optim, std::vector<data::Field> fields,
          int shards, std::uint64_t seed, Cores& cores);
  ~Trainer();

  StepResult step(std::uint64_t step, double lr, const data::Batch& batch);

  const ParameterTable& table() const { return table_; }
  std::span<float> parameters() { return parameters_.as<float>(); }

  // All that a checkpoint must hold besides the parameters, by name: the optimizer's state and the carried values.
  struct State {
    std::string name;
    std::span<std::byte> bytes;
  };
  std::vector<State> state();

  std::int64_t shards() const { return shards_; }
  double flops_per_sample() const;    // of a training step, forward and backward
  std::size_t planned_bytes() const;  // parameters, contributions, state, and the arenas of all cores

  // From now on every operation is told to `watch`, from the thread of the core that ran it; empty: nobody watches.
  struct Watch {
    std::function<double()> now;
    std::function<void(int core, const Node& node, double begin, double end)> saw;
  };
  void watch(Watch watch) { watch_ = std::move(watch); }

  // Seconds that each node of each phase's graph took in a step on core 0's first shard, and the graphs themselves.
  struct Profile {
    std::string phase;
    const Graph* graph;
    std::vector<double> seconds;
  };
  std::vector<Profile> profile(const data::Batch& batch, int repeats, const std::function<double()>& now);

 private:
  struct PhaseState;
  void run_phase(PhaseState& phase, int core, const data::Batch& batch, StepContext context, double lr);
  [[noreturn]] void explain_not_finite(PhaseState& phase, const data::Batch& batch, StepContext context);

  const models::Model& model_;
  std::vector<data::Field> fields_;
  int shards_;
  std::uint64_t seed_;
  Cores& cores_;
  ParameterTable table_;
  Buffer parameters_;
  std::vector<std::unique_ptr<ShardFolder>> folders_;  // by core; null for a core without shards
  std::vector<PartialSum> partials_;                   // of all cores, in the order of shards
  std::span<float> total_;                             // the sum over all shards: over the partial sum of shard 0
  std::vector<std::unique_ptr<PhaseState>> phases_;
  Watch watch_;
};

}  // namespace echelon
