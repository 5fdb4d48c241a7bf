#pragma once
// Forward and backward of a rank's logical shards, on its cores; a core that is done takes over shards of one that is
// not. Leaves the contributions to the gradient as partial
// sums over neighbouring shards (collective/shard_tree.h); whoever owns this object sums them and updates the weights.
//
// One thread drives it: prepare(batch), then every core run(...) at the same time. Allocates nothing in a step once
// every size of micro-batch has occurred.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collective/shard_tree.h"
#include "collective/shared_reducer.h"
#include "data/loader.h"
#include "models/model.h"
#include "optim/update.h"
#include "parallel/step/compute_hooks.h"
#include "parallel/step/node_actions.h"
#include "parallel/step/shard_queue.h"
#include "parallel/step/shard_runner.h"
#include "parallel/step/slow_down.h"
#include "world/os/cores.h"
#include "world/world.h"

namespace echelon {

struct ComputeSettings {
  const models::Model* model = nullptr;
  std::vector<data::Field> fields;  // the data set's
  int shards = 1;                   // of a batch
  std::uint64_t seed = 1;
  std::int64_t largest_shard =
      1;  // samples of a shard; only models that carry values from step to step need to know it
  std::function<void(const ParameterTable&, std::span<float>)> start = {};  // as EngineSettings'
  // Cores race within a step: each moves the weights by its shard's gradient as soon as it has it, without a lock, and
  // reads them anew before its next shard, while others write (parallel/step/racing.h). For weights of which no
  // gradient is made (take_factors) nobody does. The sum of the gradients is left as always.
  bool race = false;
};

// Which ranks split the shards of a batch among them.
struct ShardSplit {
  int rank = 0, ranks = 1;
  bool share_memory = true;  // what `memory` gives is the same for all of them
};

struct ShardLoss {  // of one shard
  double loss = 0;  // summed over its terms
  double correct = 0;
};

// One phase of a training step: a GAN has two, everything else one.
struct ComputePhase {
  std::string name;
  std::int64_t loss_terms;  // per sample
  MicroBatchPlans plans;
  CarryStore carries;
  std::vector<TrainedSpan> segments;      // what it trains, in the order of offsets
  std::span<ShardLoss> losses;            // by shard, of all ranks
  std::vector<ShardRunner> runners = {};  // by own core
  std::unique_ptr<ShardQueue> queue = {};
  ShardLoss total = {};
  double seconds = 0;  // that core 0 took in the last step

  // Only if there are hooks:
  std::vector<Bucket> buckets = {};
  std::vector<std::atomic<int>> missing = {};                     // cores that have not completed it, by bucket
  std::map<std::int64_t, std::vector<NodeActions>> actions = {};  // by samples, for each node
};

class ShardCompute {
 public:
  // `memory` gives zeroed memory by name; it outlives this object, as do the model, world and cores.
  ShardCompute(const ComputeSettings& settings, World& world, Cores& cores, ShardSplit split,
               const Update::Memory& memory);

  ComputeHooks& hooks() { return hooks_; }

  // Before the cores start: compiles plans, resets what counts per step.
  void prepare(const data::Batch& batch);
  // One core's part of a phase: its shards, then those of other cores that nobody has begun; those stay where they are
  // if buckets are handed out while the cores compute, or the rank is slowed down for an experiment. The loss is
  // divided by `mean_over` samples.
  void run(ComputePhase& phase, int core, const data::Batch& batch, StepContext context, double mean_over);
  // After all ranks' losses are known: adds them up. False if the sum is not finite.
  static bool sum_losses(ComputePhase& phase);

  const std::vector<std::unique_ptr<ComputePhase>>& phases() const { return phases_; }
  void set_buckets(ComputePhase& phase, std::vector<Bucket> buckets);
  const Plan& plan(ComputePhase& phase, std::int64_t samples);  // compiled if need be

  const ParameterTable& table() const { return table_; }
  std::span<float> parameters() { return parameters_; }
  // Partial sums that are complete after run(), of all ranks on this memory, in the order of shards.
  std::span<const PartialSum> partial_sums() const { return partials_; }
  std::span<float> place_for_sum() { return place_for_sum_; }  // the leftmost partial sum's memory; may be empty
  const ComputeSettings& settings() const { return settings_; }
  ShardRange own_shards() const { return shards_of(split_.rank, split_.ranks, settings_.shards); }
  ShardRange shards_of_core(int core) const;  // that are dealt to it
  // The executor of the core that was dealt the shard, with the shard's samples loaded.
  Executor& load(ComputePhase& phase, const data::Batch& batch, int shard);

  // Of the last step:
  bool handed_in_early() const { return handed_in_; }  // keep_going said no
  std::int64_t samples_done() const { return samples_done_; }
  // Of all steps:
  double seconds() const { return seconds_; }                        // of core 0
  double waited_for_weights() const { return waited_for_weights_; }  // of them in `before_reading`

  double flops_per_sample();        // of a training step, forward and backward
  std::size_t arena_bytes() const;  // of all cores, and what sums of shards that change cores take

  // Seconds that each node of each phase's graph took on the first shard, on core 0.
  struct Profile {
    std::string phase;
    const Graph* graph;
    std::vector<double> seconds;
  };
  std::vector<Profile> profile(const data::Batch& batch, int repeats, const std::function<double()>& now);

 private:
  ShardReducer* reducer_of(int core) const;
  bool goes_node_by_node() const { return hooks_.announce || hooks_.bucket_complete || hooks_.take_factors; }
  void add_phase(const models::Phase& of_model, std::size_t index, const Update::Memory& memory);
  bool takes_over() const { return shared_ && !hooks_.bucket_complete && hooks_.slowness <= 1; }
  void bind_executors(ComputePhase& phase, int core, const data::Batch& batch);
  // `first`: of this core in this step. `reserved`: as SharedReducer's.
  struct Turn {
    int shard;
    bool first, last;
    int reserved = -1;
  };
  void run_shard(ComputePhase& phase, int core, const data::Batch& batch, StepContext context, Turn turn);
  void run_nodes(ComputePhase& phase, Executor& executor, int core, const data::Batch& batch, StepContext context,
                 bool last);
  bool offer_factors(const NodeActions& actions, const Executor& executor, const data::Batch& batch,
                     std::uint64_t shard, std::size_t node) const;
  void complete(ComputePhase& phase, int core, std::size_t bucket);
  std::span<float> weights_of(int core) {
    return settings_.race ? raced_[static_cast<std::size_t>(core)].as<float>() : parameters_;
  }
  void find_racing_spans();
  void move_weights(const float* gradient);

  const ComputeSettings settings_;
  World& world_;
  Cores& cores_;
  const ShardSplit split_;
  ParameterTable table_;
  std::span<float> parameters_;
  std::vector<TrainedSpan> racing_spans_;
  std::vector<Buffer> raced_;                            // where cores race: the weights that each computes with
  std::vector<std::unique_ptr<ShardReducer>> reducers_;  // of all cores on this memory; null for one without shards
  std::unique_ptr<SharedReducer> shared_;                // of this rank's; null if it has one busy core
  std::vector<PartialSum> partials_;
  std::span<float> place_for_sum_;
  int busy_cores_ = 0;                                        // of this rank, with shards
  std::vector<std::shared_ptr<std::vector<Buffer>>> arenas_;  // by own core
  std::vector<std::unique_ptr<ComputePhase>> phases_;
  ComputeHooks hooks_;
  SlowDown slow_down_;  // core 0's
  double seconds_ = 0, waited_for_weights_ = 0;
  std::atomic<bool> handed_in_ = false;
  std::atomic<std::int64_t> samples_done_ = 0;
};

}  // namespace echelon
