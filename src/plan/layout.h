#pragma once
// Which rank has which stages of a plan, for which micro-batches. The ranks of a stage's tensor parts are neighbours,
// and so are those of a pipeline: rank = (replica * pipeline + position) * tensor + part. The micro-batches of a batch
// (logical shards) are spread over the replicas in order, and within a replica over its lines: one, or two in opposite
// directions (schedule bidirectional). Where replicas share their gradients (zero 2, 3), neighbouring micro-batches are
// on different replicas, so that sums over neighbours can be completed at once. Pure arithmetic, the same on all ranks;
// immutable.

#include <vector>

#include "collective/shard_tree.h"
#include "plan/schedule.h"
#include "plan/spec.h"

namespace echelon {

struct HostedStage {
  int stage = 0, part = 0, line = 0;
  ShardRange shards = {};  // that run through it here
};

class PlanLayout {
 public:
  // A legal plan whose `data` is filled in.
  PlanLayout(const PlanSpec& plan, int shards);

  const PlanSpec& plan() const { return plan_; }
  int ranks() const { return plan_.data * ranks_of_replica(); }
  int ranks_of_replica() const { return plan_.pipeline * plan_.tensor; }
  int stages() const { return plan_.stages(); }
  int parts() const { return plan_.tensor; }  // of a stage
  int shards() const { return shards_; }
  int lines() const { return plan_.schedule == "bidirectional" && plan_.pipeline > 1 ? 2 : 1; }
  bool splits_weights() const { return schedules_.front().splits_weights; }

  int replica_of(int rank) const { return rank / ranks_of_replica(); }
  int position_of(int rank) const { return rank / plan_.tensor % plan_.pipeline; }  // in its pipeline
  int line_of(int shard) const;
  int rank_of(int replica, int line, int stage, int part) const;
  int replica_of_shard(int shard) const;
  ShardRange shards_of_replica(int replica) const;
  ShardRange shards_of_line(int replica, int line) const;
  std::vector<HostedStage> hosted(int rank) const;  // in the order of stages
  // The ranks that have a part of a stage, in the order of their shards.
  std::vector<int> ranks_of_stage(int stage, int part) const;

  // Of a replica; micro-batches count from its first shard.
  const PipelineSchedule& schedule(int replica) const { return schedules_[static_cast<std::size_t>(replica)]; }
  const std::vector<StageTask>& list(int rank) const {
    return schedule(replica_of(rank)).ranks[static_cast<std::size_t>(position_of(rank))];
  }

 private:
  PlanSpec plan_;
  int shards_;
  const ScheduleKind* kind_;
  std::vector<PipelineSchedule> schedules_;  // by replica
};

}  // namespace echelon
