#pragma once
// A worker of a composed system: a replica of the model that trains by itself (parallel/step/local_trainer.h), and an
// exchange with the others, as the composition says. A step:
//
//   work        which part of which batch               team/work_scheduler.h, or simply the next step (in lock-step)
//   before      the sync may make it wait               exchange->before_step
//   gradient    forward and backward                    trainer.compute; buckets leave as they become complete
//   exchange    rules of gradients                      exchange->exchange
//   update      the worker's own optimizer              trainer.update
//   exchange    rules of weights, when it is due        exchange->exchange
//
// A replica may itself be split over ranks (settings.plan): each rank then trains and exchanges its stage
// (parallel/planned/split_trainer.h), and the first of them speaks for the replica where work and losses are counted.
//
// At the end of run() all ranks meet.

#include <memory>
#include <vector>

#include "parallel/composition.h"
#include "parallel/engine.h"
#include "parallel/planned/split_trainer.h"
#include "parallel/replica_state.h"
#include "parallel/step/local_trainer.h"
#include "parallel/team/exchange_waits.h"
#include "parallel/team/work_scheduler.h"
#include "world/os/file_memory.h"

namespace echelon {

class Replica final : public Engine {
 public:
  // `team` is of all ranks and does not share memory; its world counts what is sent (world/wrappers/metered.h). It
  // outlives the replica, as does the composition. Collective.
  Replica(const EngineSettings& settings, const Composition& composition, Team& team);
  // If it was not closed, something went wrong: where messages are used, the others are told (world/mailbox/mailbox.h).
  ~Replica() override;

  Reached run(const StepRange& range) override;
  const ParameterTable& table() const override { return split_ ? split_->whole_table() : trainer_.table(); }
  std::span<const float> gradient() override { return split_ ? std::span<float>{} : trainer_.gradient(); }
  std::span<float> model() override { return split_ ? split_->model() : model_; }
  bool model_is_everywhere() const override { return !split_ || split_->model_is_everywhere(); }
  void read_model() override;
  std::vector<StateSpan> state() override { return states_->all(); }
  void gather() override { states_->gather(own_state()); }
  void scatter() override;
  void adapt(data::LoaderOptions& options) const override;
  bool follow(MessageOrder& order) override;
  double epoch_share() const override { return composition_.work.epoch_share; }
  int working_ranks() const override { return world_.size(); }
  double flops_per_sample() override { return trainer_.flops_per_sample(); }
  void watch(Watch watch) override { trainer_.hooks().watch = std::move(watch); }
  RankTimes times() const override { return times_; }
  double bytes_sent() override { return bytes_; }
  std::vector<Figure> figures() override { return exchange_->figures(); }
  void close() override;

  ReplicaTrainer& trainer() { return trainer_; }
  Exchange& exchange() { return *exchange_; }                         // for looking into it
  double weight_in_mean() const { return exchange_->peer_weight(); }  // of this replica, where the model is their mean

 private:
  std::vector<StateSpan> own_state();
  When when() const;
  StepInfo info_of(const StepRange& range, const WorkItem& item, const data::Batch& batch, std::int64_t clock) const;
  StepResult do_step(const StepRange& range, const WorkItem& item);
  std::int64_t steps_at_once(const StepRange& range, std::int64_t step) const;
  StepResult do_steps(const StepRange& range, std::int64_t step, std::int64_t count);
  int part() const { return peers_.world().rank(); }  // of a batch: this replica's
  int replicas() const { return peers_.world().size(); }
  bool speaks() const { return !split_ || split_->speaks(); }  // for its replica
  SplitTrainer::Agreed next_item();
  bool asked_to_stop(const StepRange& range);
  void count_waits_for_stages(double seconds);
  std::int64_t run_in_lockstep(const StepRange& range);
  std::int64_t run_at_own_pace(const StepRange& range);
  void end_round();
  void average(std::span<float> values, double weight);
  void agree_on_statistics(std::int64_t step);
  double sent_since_start() const;

  const EngineSettings settings_;
  const Composition& composition_;
  Team& team_;
  World& world_;
  std::unique_ptr<SplitTrainer> split_;  // where the replica is split
  std::unique_ptr<LocalTrainer> local_;  // else
  ReplicaTrainer& trainer_;
  Team& peers_;                               // with which it exchanges: all ranks, or those that have the same stage
  FileMemory files_[2];                       // where a replica's weights lie in files: of these two too
  Buffer buffers_[2];                         // else
  std::span<float> model_, averaged_;         // of what the trainer has
  std::unique_ptr<Mailbox> mailbox_;          // only if messages are used
  MessageOrder* order_ = nullptr;             // of what the mailbox hands out; null: nobody notes it
  std::unique_ptr<WorkScheduler> scheduler_;  // the same, and this rank speaks
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<ReplicaState> states_;
  RankTimes times_;
  ExchangeWaits waits_;
  std::unique_ptr<Liar> liar_;     // only in an experiment with workers that lie
  std::int64_t clock_ = 0;         // steps that this replica has done
  double bytes_ = 0;               // sent by all in earlier rounds
  double own_bytes_ = 0;           // sent by this rank in this process's earlier rounds
  std::uint64_t round_start_ = 0;  // what this rank had sent when the round began
};

}  // namespace echelon
