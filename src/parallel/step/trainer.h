#pragma once
// Synchronous training of one model on the cores of all ranks of a world. A step: every core runs its logical shards
// forward and backward, the shards' contributions are summed in the fixed tree, and the update runs over the cores by
// ranges of elements. The weights after any number of steps are the same bits for any number of cores and ranks (law
// 1).
//
// Where ranks share memory (parallel/team/team.h) there is one copy of the parameters and of the optimizer's state, and
// all cores of all ranks split the sum and the update. Where they do not, every rank has its own; sums go out in
// buckets while backward still runs (parallel/step/rank_sum.h), and every rank does the whole update.
//
// Allocates nothing in a step once every size of slice has occurred. One thread of each rank drives it, all with the
// same steps; the cores work inside step().

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/state.h"
#include "collective/shard_tree.h"
#include "data/loader.h"
#include "graph/program.h"
#include "models/model.h"
#include "optim/optim.h"
#include "parallel/step/rank_sum.h"
#include "parallel/step/shard_runner.h"
#include "parallel/step/thin_product.h"
#include "parallel/team/team.h"

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
  bool stop = false;         // whether any rank wants to stop after this step
};

// Where a rank's time in steps went, in seconds.
struct RankTimes {
  double compute = 0;               // forward and backward
  double exchange = 0;              // summing, sending, updating; waiting for nobody in particular
  std::vector<double> waiting_for;  // by rank
};

struct TrainerPhase;  // parallel/step/trainer_phase.h
struct NodeActions;

class Trainer {
 public:
  // `make_optim` is called once for each phase of the model's training step. `fields` are the data set's.
  // The batches given to step() need to hold own_shards() only. `largest_slice`: of a shard's samples; only models that
  // carry values from step to step need to know it beforehand.
  Trainer(const models::Model& model, const std::function<Optim()>& make_optim, std::vector<data::Field> fields,
          int shards, std::uint64_t seed, Team& team, std::int64_t largest_slice = 1);
  ~Trainer();

  StepResult step(std::uint64_t step, double lr, const data::Batch& batch, bool wants_to_stop = false);

  // The two halves of a step, for a trainer that is alone and a model with one phase: somebody may look at the
  // gradient, or change it, in between. `compute` leaves in `gradient` the sum over this batch's samples, divided by
  // `mean_over`.
  StepResult compute(std::uint64_t step, const data::Batch& batch, double mean_over);
  std::span<float> gradient() { return total_; }
  void update(std::uint64_t step, double lr);
  void move_statistics();                            // instead of `update`, where the weights come from somebody else
  const std::vector<TrainedSpan>& segments() const;  // what is trained, in the order of offsets
  // For `compute`: buckets in the order in which they become complete, and whom to tell. It is called once for each,
  // with its place among buckets(), by any core, while others still compute. An empty `ready`: nobody.
  void send_buckets(std::size_t least_bytes, std::function<void(std::size_t bucket)> ready);
  const std::vector<Bucket>& buckets() const;
  // The weights whose gradient can be had as factors (parallel/step/thin_product.h). From then on `compute` offers each
  // shard's factors to `take`, from the core that has them, while others still compute; what it takes (true) is not
  // multiplied, and those numbers of `gradient` mean nothing. An empty `take`: nobody wants them.
  std::vector<ThinProduct> thin_products();
  void give_factors(std::function<bool(const FactorSlice&)> take);
  // For `compute`: whom to ask before a node of the forward pass reads parameters, with each run of numbers that it
  // reads. Asked by every core. It may wait until they are there. Needs `announce`. Empty: nobody.
  void before_reading(std::function<void(Range)> ask) { before_reading_ = std::move(ask); }
  // Parameters in the order in which forward reads them first.
  std::vector<Range> reading_order();
  // For `compute`: asked by core 0 before each further one of its shards; false: what is left of the batch is left out,
  // and the gradient is the mean over the samples that were done (`samples` of the result). The first shard of a core
  // is always done. Empty: nobody is asked.
  void ask_before_shards(std::function<bool()> keep_going) { keep_going_ = std::move(keep_going); }
  // Lets every computation take that many times as long as it does, from now on: an experiment.
  void slow_down(double factor) { slowness_ = factor; }
  // Says what it is doing and lets simulated time pass even though it is alone: a replica among others.
  void announce() { announces_ = true; }
  ShardRange own_shards() const { return shards_of(team_.world().rank(), team_.world().size(), shards_); }

  const ParameterTable& table() const { return table_; }
  std::span<float> parameters() { return parameters_; }

  // All that a checkpoint must hold besides the parameters, by name: the optimizer's state and the carried values.
  std::vector<StateSpan> state();
  // Before parameters and state are read on rank 0 to be saved: all ranks call it, and it is all there. Afterwards all
  // ranks call end_of_reading(), and may go on.
  void begin_reading();
  void end_of_reading();
  // After rank 0 has loaded parameters and state: all ranks call it, and have them too.
  void broadcast_state();

  RankTimes times() const;
  // The buckets in which sums go out, in numbers; none where ranks share memory.
  std::vector<std::size_t> bucket_sizes() const;

  std::int64_t shards() const { return shards_; }
  double flops_per_sample() const;    // of a training step, forward and backward
  std::size_t planned_bytes() const;  // parameters, contributions, state, and the arenas of all cores

  // From now on every operation is told to `watch`, from the thread of the core that ran it; empty: nobody watches.
  struct Watch {
    std::function<double()> now;
    std::function<void(int core, const Node& node, double begin, double end)> saw;
    std::function<void(const char* what, double begin, double end)> did = {};  // the driving core, besides operations
  };
  void watch(Watch watch) { watch_ = std::move(watch); }
  void tell_watch(const char* what, double begin, double end) const {
    if (watch_.did) watch_.did(what, begin, end);
  }
  double waited_for_weights() const { return waited_for_weights_; }  // seconds of core 0 (before_reading)

  // Seconds that each node of each phase's graph took in a step on core 0's first shard, and the graphs themselves.
  struct Profile {
    std::string phase;
    const Graph* graph;
    std::vector<double> seconds;
  };
  std::vector<Profile> profile(const data::Batch& batch, int repeats, const std::function<double()>& now);

 private:
  void prepare(TrainerPhase& phase, const data::Batch& batch);
  void run_phase(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context, double mean_over);
  void compute_phase(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context, double mean_over);
  void run_shard(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context, bool last,
                 bool left_out);
  bool offer_factors(TrainerPhase& phase, const Executor& executor, const data::Batch& batch, std::uint64_t shard,
                     std::size_t node);
  bool goes_node_by_node() const { return team_.world().size() > 1 || announces_ || bucket_ready_ || take_factors_; }
  void after_node(TrainerPhase& phase, int core, std::int64_t slice, std::size_t node, bool last, bool taken);
  void complete(TrainerPhase& phase, int core, std::size_t bucket);
  void update(TrainerPhase& phase, int core, std::span<const PartialSum> sums);
  void simulate_slowness();
  void sum_losses(TrainerPhase& phase);
  StepResult result_of(const TrainerPhase& phase, std::int64_t samples) const;
  [[noreturn]] void explain_not_finite(TrainerPhase& phase, const data::Batch& batch, StepContext context);
  ShardRange shards_of_core(int core) const;
  Rank rank_of(int shard) const;

  // parallel/step/trainer_ranks.cpp
  std::vector<NodeActions> node_actions(const TrainerPhase& phase, std::int64_t slice) const;
  void prepare_ranks(TrainerPhase& phase, const data::Batch& batch);
  std::vector<ReadyPiece> ready_pieces(const Graph& graph, double speed, double start) const;
  std::vector<Bucket> agree_on_buckets(TrainerPhase& phase, const data::Batch& batch);
  void share_losses(TrainerPhase& phase);
  [[noreturn]] void wait_for_the_end_of(Rank rank);

  const models::Model& model_;
  std::vector<data::Field> fields_;
  int shards_;
  std::uint64_t seed_;
  Team& team_;
  Cores& cores_;
  ParameterTable table_;
  std::span<float> parameters_;
  std::vector<std::unique_ptr<ShardReducer>> reducers_;  // of the team's cores; null for a core without shards
  std::unique_ptr<RankSum> rank_sum_;                    // null if the team is everyone
  std::vector<PartialSum> partials_;                     // that make up the whole sum, in the order of shards
  std::vector<PartialSum> summed_;                       // the sum itself, where somebody else has taken it
  std::span<float> total_;                               // the sum over all shards
  std::span<double> wants_stop_;                         // by rank
  std::vector<std::unique_ptr<TrainerPhase>> phases_;
  Watch watch_;
  RankTimes times_;
  std::int64_t steps_ = 0;  // done by this object
  bool announces_ = false;
  double slowness_ = 1;
  double waited_for_weights_ = 0;
  double slow_from_ = 0;  // when core 0 began what it has not been slow about yet
  std::function<bool()> keep_going_;
  std::atomic<bool> handed_in_ = false;         // somebody does not want the rest of this batch
  std::atomic<std::int64_t> samples_done_ = 0;  // of this batch
  std::function<void(Range)> before_reading_;
  std::function<void(std::size_t)> bucket_ready_;
  std::function<bool(const FactorSlice&)> take_factors_;
  std::vector<std::atomic<int>> bucket_missing_;  // cores that have not completed it, by bucket
  int busy_cores_ = 0;                            // of this rank, with shards
  std::vector<double> shared_;                    // losses and wishes on their way
  std::vector<std::size_t> shared_counts_;        // by rank
};

}  // namespace echelon
