#pragma once
// Exact synchronous training of one model on the cores of all ranks. A step: every core runs its logical shards forward
// and backward (parallel/step/shard_compute.h), the shards' contributions are summed in the fixed tree, and the update
// runs over the cores by ranges of elements. The weights after any number of steps are the same bits for any number of
// cores and ranks (law 1).
//
// Where ranks share memory (parallel/team/team.h) there is one copy of the parameters and of the optimizer's state, and
// all cores of all ranks split the sum and the update. Where they do not, every rank has its own; sums go out in
// buckets while backward still runs (parallel/step/rank_sum.h), and every rank does the whole update.
//
// Allocates nothing in a step once every size of micro-batch has occurred. One thread of each rank drives it, all with
// the same steps; the cores work inside step().

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/state.h"
#include "optim/optim.h"
#include "parallel/step/bit_flip.h"
#include "parallel/step/loss_gather.h"
#include "parallel/step/not_finite.h"
#include "parallel/step/rank_sum.h"
#include "parallel/step/shard_compute.h"
#include "parallel/step/step_result.h"
#include "parallel/team/team.h"

namespace echelon {

class Trainer {
 public:
  // `make_optim` is called once for each phase of the model's training step. The batches given to step() need to hold
  // own_shards() only. Model and team must outlive it. Collective.
  Trainer(const ComputeSettings& settings, const std::function<Optim()>& make_optim, Team& team);

  // NotFinite, on all ranks alike, if the loss is not a number, or the gradient of any rank is not: the weights are
  // then not to be used any more.
  StepResult step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop = false);

  ComputeHooks& hooks() { return compute_.hooks(); }  // watch and slowness; the others are the trainer's own
  ShardRange own_shards() const { return compute_.own_shards(); }
  const ParameterTable& table() const { return compute_.table(); }
  std::span<float> parameters() { return compute_.parameters(); }
  std::span<const float> gradient() const { return total_; }  // of the last step's last phase, summed over the batch

  // What this rank's shards came to in the last step's last phase. Meaningless where ranks share memory.
  std::vector<std::span<const float>> contributions() const;
  void spoil_gradient(BitFlip::Of how) { spoils_ = how; }  // one of them, in the next step: an experiment

  // All that a checkpoint must hold besides the parameters, by name: the optimizer's state and the carried values.
  std::vector<StateSpan> state();
  // Around reading parameters and state on rank 0. All ranks call both; in between, state() is complete on rank 0 and
  // no rank changes it.
  void begin_reading();
  void end_reading();
  // After rank 0 has loaded parameters and state: all ranks call it, and have them too.
  void broadcast_state();

  RankTimes times() const;
  double flops_per_sample() { return compute_.flops_per_sample(); }  // of a training step, forward and backward
  std::size_t planned_bytes() const;  // parameters, contributions, state, and the arenas of all cores
  std::vector<ShardCompute::Profile> profile(const data::Batch& batch, int repeats,
                                             const std::function<double()>& now) {
    return compute_.profile(batch, repeats, now);
  }

 private:
  void plan_buckets(const data::Batch& batch);
  void run_phase(std::size_t phase, int core, const data::Batch& batch, StepContext context);
  void update(std::size_t phase, int core);
  [[noreturn]] void explain_gradient(const ComputePhase& phase, StepContext context);
  [[noreturn]] void explain(ComputePhase& phase, const data::Batch& batch, StepContext context);
  const std::vector<std::unique_ptr<ComputePhase>>& phases() const { return compute_.phases(); }

  Team& team_;
  Cores& cores_;
  World& world_;
  ShardCompute compute_;
  std::unique_ptr<RankSum> rank_sum_;                   // null if all ranks share memory
  std::unique_ptr<LossGather> losses_;                  // the same
  std::vector<PartialSum> sums_;                        // that make up the whole sum, in the order of shards
  std::span<float> total_;                              // the sum over all shards
  std::span<StopRequest> stops_;                        // by rank
  std::vector<std::unique_ptr<Update>> updates_;        // by phase
  std::vector<char> finite_;                            // by phase, in this step
  std::atomic<BitFlip::Of> spoils_ = BitFlip::weights;  // of the gradient; weights: nothing
  std::span<std::uint32_t> not_finite_;                 // whose update met a gradient that is not, by rank
  double updating_ = 0;                                 // seconds of core 0
  std::int64_t steps_ = 0;                              // done by this object
};

}  // namespace echelon
