#pragma once
// Exact training of a model that is split over ranks as a plan says (plan/spec.h). The bits are those of training the
// whole model on one rank: the same nodes run on the same operands, contributions are summed over micro-batches in the
// same tree, and norms over parameters in the same order.
//
// A step is one loop over this rank's list of tasks. Then all ranks learn the losses, each stage sums its contributions
// over the ranks that have it, and updates what it owns.
//
// Between steps the whole model is on every rank (model()), or on the first alone, in a file (plan key `evaluate`), for
// evaluations and checkpoints; optimizer state is gathered on rank 0 while a checkpoint is read. Checkpoints are those
// of the unsplit model: any plan goes on from any other.
//
// Allocates nothing in a step once every size of micro-batch has occurred.

#include <memory>
#include <vector>

#include "parallel/planned/norm_gather.h"
#include "parallel/planned/plan_view.h"
#include "parallel/planned/stage_compute.h"
#include "parallel/planned/stage_messages.h"
#include "parallel/planned/whole_model.h"
#include "parallel/planned/whole_state.h"
#include "parallel/step/lock_step_engine.h"
#include "parallel/step/loss_gather.h"
#include "parallel/team/exchange_waits.h"

namespace echelon {

class PlannedEngine : public LockStepEngine {
 public:
  // settings.plan is given, legal for this model and team (plan/spec.h), and has `data` filled in. Collective.
  PlannedEngine(const EngineSettings& settings, Team& team);

  const ParameterTable& table() const override { return table_; }
  std::span<float> model() override { return model_; }
  bool model_is_everywhere() const override { return on_all_; }
  void read_model() override;
  std::vector<HeldWeights> held_weights() override;

  std::vector<StateSpan> state() override { return state_->spans(); }
  void gather() override { state_->gather(); }
  void end_gather() override { state_->clear(); }
  void scatter() override;

  void adapt(data::LoaderOptions& options) const override;
  int working_ranks() const override { return world_.size(); }
  double flops_per_sample() override;
  void watch(Watch watch) override { watch_ = std::move(watch); }
  RankTimes times() const override { return times_; }
  std::vector<Figure> figures() override;
  RankBytes bytes() const;  // what this rank has allocated: view_plan() knows it before

  // --- for replicas of a composed system (split_trainer.h), which exchange something within a step ---
  // The two halves of a step. After the first one each stage has its gradient; `result.gradient_norm` comes with the
  // second.
  StepResult compute(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, bool asks_to_stop,
                     double slowness);
  void finish_step(std::uint64_t step, double lr);
  StageCompute& only_stage();                // of a rank that has one
  std::vector<TrainedSpan> segments_here();  // what that stage trains, at its own offsets
  // Whoever has a parameter that another rank owns gets its value. Of one replica, which does not share its state.
  void copy_from_owners() { whole_->copy_from_owners(); }
  void collect_model(const WholeModel::Own& own) { whole_->collect(WholeModel::What::parameters, model_, own); }

 protected:
  StepResult do_step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop,
                     double slowness) override;
  void make_model();
  void prepare(const data::Batch& batch);
  virtual void run_tasks(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, double slowness);
  // All passes of one micro-batch on a rank that has the whole model.
  void run_micro_batch(int shard, std::uint64_t step, const data::Batch& batch, std::uint64_t seed, double slowness);
  StepContext context_of(int shard, std::uint64_t step, const data::Batch& batch, std::uint64_t seed) const;
  virtual void share_losses() { loss_gather_->run(losses_, stops_); }  // and who asks to stop
  void run_task(const StageTask& task, MicroBatchSize size, const data::Batch& batch, const StepContext& context,
                double slowness, std::int64_t version = -1);
  virtual void sum_over_ranks();
  void update(std::uint64_t step, double lr);
  [[noreturn]] void explain(std::uint64_t step);
  StageCompute& stage_of(int stage, int shard);
  WholeMemory memory_for_whole(std::size_t bytes) const;
  Group& everyone() { return alone_ ? *alone_ : team_.group(); }

  PlanLayout layout_;
  const bool on_all_;             // the whole model; else on rank 0
  std::unique_ptr<Group> alone_;  // of a single rank
  ParameterTable table_;          // of the whole model
  WholeMemory model_memory_;      // the same
  std::span<float> model_;
  StagePlans plans_;
  std::vector<HostedStage> hosted_;
  std::vector<std::unique_ptr<StageCompute>> stages_;  // that this rank has
  std::vector<PlacedGraph::Copy> shared_weights_;
  std::unique_ptr<WholeModel> whole_;
  std::unique_ptr<WholeState> state_;
  std::vector<std::unique_ptr<Group>> groups_;  // by stage here: the ranks that have it
  std::unique_ptr<Group> replica_;              // the ranks of this rank's replica
  std::unique_ptr<NormGather> norms_;
  std::unique_ptr<StageMessages> messages_;
  std::unique_ptr<LossGather> loss_gather_;
  std::vector<ShardLoss> losses_;
  std::vector<StopRequest> stops_;
  std::int64_t loss_terms_ = 1;
  std::shared_ptr<std::vector<Buffer>> arena_;
  Watch watch_;
  ExchangeWaits waits_;
  RankTimes times_;
};

}  // namespace echelon
