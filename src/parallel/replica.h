#pragma once
// A worker of a composed system: a replica of the model that trains by itself (a Trainer that believes to be alone) and
// an exchange with the others, as the composition says. The journey of a step:
//
//   work        which part of which batch              work.h (own pace), or simply the next step (in lock-step)
//   before      the sync may make it wait               exchange->before_step
//   gradient    forward and backward                    trainer.compute; buckets leave as they become complete
//   exchange    rules of gradients                      exchange->exchange
//   update      the worker's own optimizer              trainer.update
//   exchange    rules of weights, when it is due        exchange->exchange
//
// Between rounds of steps all ranks meet: then the model can be read, evaluated and saved. One thread of each rank
// drives it, all with the same rounds.

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "parallel/composition.h"
#include "parallel/step/trainer.h"
#include "parallel/team/straggler.h"
#include "parallel/team/team.h"
#include "parallel/team/work_scheduler.h"
#include "world/wrappers/metered.h"

namespace echelon {

struct ReplicaSettings {
  const models::Model* model = nullptr;
  std::function<Optim()> make_optim;
  std::vector<data::Field> fields;
  int shards = 1;  // of each part of a batch
  std::uint64_t seed = 1;
  std::int64_t largest_slice = 1;
  std::vector<Straggler> stragglers;  // experiments
};

// What a round has to know from outside.
struct ReplicaRound {
  std::int64_t from = 0, to = 0;  // steps
  // Samples after which it may end where workers go at their own pace: who is behind leaves the rest of its parts out.
  std::int64_t enough = std::numeric_limits<std::int64_t>::max();
  data::Loader* loader = nullptr;
  std::function<double(std::int64_t step)> lr, epoch;
  std::function<bool()> wants_to_stop;
  // After each of this rank's steps that brings reports of everybody's: how many steps of the round are done, and what
  // they came to since the last call. Rank 0 in any case, the others where ranks are in lock-step.
  std::function<void(std::int64_t step, const StepResult&, double bytes)> on_progress;
};

class Replica {
 public:
  // `team` is of all ranks, on `world`; both outlive it, as does the composition. Collective.
  Replica(const ReplicaSettings& settings, const Composition& composition, MeteredWorld& world, Team& team);
  // If it was not closed, something went wrong: where messages are used, the others are told (world/mailbox/mailbox.h).
  ~Replica();

  Trainer& trainer() { return *trainer_; }
  std::span<float> model() { return model_.as<float>(); }  // as of the last read_model

  // Returns the step that the round has reached: `to`, or less if somebody wanted to stop. Collective.
  std::int64_t run(const ReplicaRound& round);
  void read_model();                                                  // collective
  double weight_in_mean() const { return exchange_->peer_weight(); }  // of this replica, where the model is their mean
  bool may_prefetch() const { return !composition_.work.common; }

  // For checkpoints: everything that every rank remembers, gathered on rank 0. All ranks call gather(), then rank 0
  // reads state(); or rank 0 fills in state(), then all ranks call scatter().
  std::vector<StateSpan> state();
  void gather();
  void scatter();

  Exchange& exchange() { return *exchange_; }                     // for looking into it
  std::vector<Figure> figures() { return exchange_->figures(); }  // between rounds; collective
  // After the last round: no rank goes before all are here. Throws PeerLost or TooLate if one does not come.
  // Collective.
  void close();
  double bytes_sent() const { return bytes_; }  // by everybody while training, as of the last round
  RankTimes times() const { return times_; }    // of its steps

 private:
  std::vector<StateSpan> own_state();
  When when() const;
  StepResult do_step(const ReplicaRound& round, const WorkItem& item);
  std::int64_t run_in_lockstep(const ReplicaRound& round);
  std::int64_t run_at_own_pace(const ReplicaRound& round);
  void average(std::span<float> values, double weight);
  void move_blobs(bool to_first);
  double sent_since_start() const;
  void begin_waits();
  void end_waits(double seconds);

  ReplicaSettings settings_;
  const Composition& composition_;
  MeteredWorld& world_;
  Team& team_;
  std::unique_ptr<World> solo_;
  Team lone_;
  std::unique_ptr<Trainer> trainer_;
  Buffer model_, averaged_;
  std::unique_ptr<Mailbox> mailbox_;          // only if messages are used
  std::unique_ptr<WorkScheduler> scheduler_;  // the same
  std::unique_ptr<Exchange> exchange_;
  RankTimes times_;
  std::vector<double> waits_before_;  // for messages, by rank, when an exchange began
  std::int64_t clock_ = 0;            // steps that this replica has done
  double bytes_ = 0;                  // sent by all in earlier rounds
  double own_bytes_ = 0;              // sent by this rank in this process's earlier rounds
  std::uint64_t round_start_ = 0;
  std::vector<std::int64_t> state_sizes_;  // by rank
  Buffer blobs_;                           // rank 0: everybody's state; else one's own
};

}  // namespace echelon
