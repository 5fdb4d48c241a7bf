#pragma once
// One stage of a split model on one rank: its parameters, the contributions of its micro-batches summed in the fixed
// tree (collective/shard_tree.h), and as many places for activations as micro-batches are alive at once. It runs a pass
// of a micro-batch when it is told to, and sums and updates what it owns: everything, or a range of it where the ranks
// that have the stage share its state (plan key `zero`).
//
// One thread drives it. Allocates nothing once every size of micro-batch has been prepared.

#include <map>
#include <memory>
#include <vector>

#include "collective/group.h"
#include "collective/shard_tree.h"
#include "data/loader.h"
#include "optim/optim.h"
#include "optim/update.h"
#include "parallel/planned/gradient_buckets.h"
#include "parallel/planned/plan_view.h"
#include "parallel/planned/shard_ranges.h"
#include "parallel/planned/stage_plans.h"
#include "parallel/planned/state_exchange.h"
#include "parallel/step/compute_hooks.h"
#include "parallel/step/shard_compute.h"
#include "parallel/step/slow_down.h"
#include "plan/layout.h"
#include "world/os/file_memory.h"

namespace echelon {

class StageCompute {
 public:
  struct Settings {
    HostedStage hosted;
    int shards = 1;  // of a batch
    int live = 1;    // micro-batches at once
    bool splits_weights = false;
    int saved_versions = 0;  // of the weights, older than the newest, for passes of steps that began with them
    int zero = 0;
    std::string offload = {};  // as in PlanSpec
    bool offloads_parameters = false;
    bool sums_outside = false;  // whoever drives it sums up contributions
    std::uint64_t seed = 1;
    std::vector<data::Field> fields;
    std::vector<int> order = {};  // in which it gets through its shards; empty: theirs
  };
  // `plans` has prepared the stage for its largest micro-batch and outlives it; `arena` is shared by the stages of a
  // rank.
  StageCompute(World& world, const StagePlans& plans, const Settings& settings,
               std::shared_ptr<std::vector<Buffer>> arena);

  // After the parameters' owners are known: makes the memory for them, with their first values. `segments` of the whole
  // model, those of this stage at its own offsets. `group` has the ranks of the stage, which own `ranges` of it where
  // they share its state; `messages` are those between stages. Both must outlive it. Collective over the group.
  void allocate(Optim optim, std::vector<TrainedSpan> segments, Group& group, const std::vector<Range>& ranges,
                Communicator& messages);

  void start_step();  // collective over the group
  // Keeps the weights of now as that version, in place of the one that is `saved_versions` older.
  void save_version(std::int64_t version);
  // On a micro-batch of so many samples, which forward passes read from the batch. Losses are written by the stage that
  // has them. `version`: of the weights, one that was saved; -1: the newest.
  void run(const StageTask& task, MicroBatchSize size, const data::Batch& batch, StepContext context,
           std::span<ShardLoss> losses, const Watch& watch, double slowness, std::int64_t version = -1);

  int stage() const { return settings_.hosted.stage; }
  int part() const { return settings_.hosted.part; }
  int line() const { return settings_.hosted.line; }
  const ShardRange& shards() const { return settings_.hosted.shards; }
  const ParameterTable& table() const { return table_; }
  // Collective over the group: after all passes, each rank has the sums of what it owns; after the update, each has the
  // parameters that it computes with.
  void sum_over_ranks();
  void gather_parameters();

  // What is here of the parameters and of a slot of the optimizer, and the element of the flat buffers it begins with.
  std::span<float> parameters() { return parameters_; }
  std::span<const float> contribution() { return reducer_->contribution(); }  // of the last micro-batch
  std::span<float> gradient() { return reducer_->total(); }  // of what this rank owns, after sum_over_ranks()
  std::size_t first_parameter() const { return settings_.zero >= 3 ? own_.begin : 0; }
  std::span<float> slot(std::size_t index) const { return update_->slots()[index].values; }
  std::size_t first_of_slots() const { return own_.begin; }
  Update& update() { return *update_; }
  CarryStore& carries() { return carries_; }
  const Graph& graph() const;  // of the largest micro-batch
  bool reads_data() const;     // some input of the data set
  const StagePlan& plan(MicroBatchSize size) const;

  // On each rank that has the stage, where they do not share its gradients.
  static std::size_t contribution_bytes(const PlanLayout& layout, int stage, int part, std::size_t floats);
  void add_bytes(RankBytes& bytes) const;  // what it has allocated; the shared arena is not its own

 private:
  struct Place {  // for one micro-batch that is alive
    int micro_batch = -1;
    std::vector<Buffer> kept;
    std::map<std::pair<MicroBatchSize, std::int64_t>, std::unique_ptr<Executor>> executors;  // by size, saved weights
  };
  void fill_parameters();
  std::span<std::byte> memory_for_state(std::size_t bytes);
  void take_part_without_samples(Pass pass, const StepContext& context);
  Place& place_of(const StageTask& task);
  Executor& executor(Place& place, MicroBatchSize size, std::int64_t version);
  void load(Executor& executor, const data::Batch& batch, int shard);
  void save_carries(const Executor& executor, int shard);
  Pass last_pass() const { return settings_.splits_weights ? Pass::weights : Pass::backward; }
  bool ends_pass(const StageTask& task) const;
  void run_nodes(Executor& executor, const StagePlan& plan, Range nodes, const StepContext& context, const Watch& watch,
                 double slowness);

  World& world_;
  const StagePlans& plans_;
  const Settings settings_;
  ParameterTable table_;
  Group* group_ = nullptr;
  std::vector<Range> ranges_;  // by rank of the group, where they share the state
  Range own_;                  // of the flat buffers
  Buffer parameter_memory_, contribution_memory_;
  std::vector<Buffer> saved_;  // parameters of earlier versions
  std::vector<Buffer> state_memory_;
  std::vector<FileMemory> files_;                       // where the plan keeps state, or more, on the disk
  std::span<float> parameters_, allocated_parameters_;  // what is here of them, and the memory that it lies in
  std::size_t bucket_bytes_ = 0;                        // of gradients that are shared
  std::span<std::byte> contributions_;
  std::unique_ptr<ShardReducer> reducer_;
  std::unique_ptr<StateExchange> exchange_;  // where gradients are shared
  std::unique_ptr<Update> update_;
  CarryStore carries_;
  std::shared_ptr<std::vector<Buffer>> arena_;
  std::vector<Place> places_;
  SlowDown slow_down_;
};

}  // namespace echelon
