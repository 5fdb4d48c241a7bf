#pragma once
// This rank's stage of a replica that is split over several ranks, in a composed system (DistBelief, Project Adam). The
// ranks of a replica are a world of their own, in which the plan runs as exact training does (planned_engine.h, with
// one replica). The ranks that have the same stage, one of each replica, are another one, in which the exchange of that
// stage's parameters runs as that of a whole model does. The two do not know each other.
//
// A parameter that several ranks of a replica have (a bias where slices are added up, a tied embedding) is exchanged by
// each of them, at times of their own, so copies drift apart; before every step the rank that owns it hands its value
// to the others.
//
// Collective over the ranks of the replica: the constructor, compute, update, agree. Over all ranks: read_model.

#include <optional>

#include "parallel/planned/planned_engine.h"
#include "parallel/step/replica_trainer.h"
#include "parallel/team/sub_team.h"
#include "parallel/team/work_scheduler.h"

namespace echelon {

class SplitTrainer final : public ReplicaTrainer {
 public:
  // settings.plan is legal for a system (plan/spec.h) and has `data` filled in; `settings.shards` are those of a
  // replica's part of a batch. `everyone` outlives it.
  SplitTrainer(const EngineSettings& settings, const std::function<Optim()>& make_optim, Team& everyone);

  Team& peers() { return peers_.team(); }  // the ranks that have this stage
  int replica() const { return replica_; }
  bool speaks() { return inside_.team().world().rank() == 0; }  // for its replica
  // What the rank that speaks says: a piece of work, or none, and the step that was reached.
  struct Agreed {
    std::optional<WorkItem> item;
    std::int64_t reached = 0;
  };
  Agreed agree(const Agreed& said);
  void adapt(data::LoaderOptions& options) const { engine_.adapt(options); }

  const ParameterTable& whole_table() const { return engine_.table(); }
  std::span<float> model();  // the whole model, as of the last read_model(); empty where it is on the first rank alone
  bool model_is_everywhere() const { return engine_.model_is_everywhere(); }
  void read_model(std::span<float> of_stage);
  void ask_to_stop(bool asked) { asks_to_stop_ = asked; }  // in the next step: compute() tells all ranks of the replica

  StepResult compute(std::uint64_t step, const data::Batch& batch, double mean_over) override;
  std::span<float> gradient() override { return stage_.gradient(); }
  void update(std::uint64_t step, double lr) override { engine_.finish_step(step, lr); }
  void move_statistics() override { stage_.update().move_statistics(); }
  ComputeHooks& hooks() override { return hooks_; }
  void send_buckets(std::size_t least_bytes, std::function<void(std::size_t bucket)> ready) override;
  const std::vector<Bucket>& buckets() const override { return buckets_; }
  const std::vector<TrainedSpan>& segments() const override { return segments_; }
  std::vector<ThinProduct> thin_products() override { return {}; }
  std::vector<Range> reading_order() override;
  std::vector<ForwardNode> time_forward() override;
  const ParameterTable& table() const override { return stage_.table(); }
  std::span<float> parameters() override { return stage_.parameters(); }
  void let_go(Range range) override;
  std::vector<StateSpan> state() override;
  double flops_per_sample() override { return engine_.flops_per_sample(); }
  double waited_for_weights() const override { return waited_for_weights_; }

 private:
  Team& everyone_;
  const std::uint64_t seed_;
  const PlanSpec plan_;  // of one replica
  const int replica_;
  SubTeam inside_, peers_;  // the replica's ranks; the stage's
  PlannedEngine engine_;
  StageCompute& stage_;
  std::vector<TrainedSpan> segments_;
  ComputeHooks hooks_;
  std::vector<Bucket> buckets_;
  bool asks_to_stop_ = false;
  double waited_for_weights_ = 0;
};

}  // namespace echelon
