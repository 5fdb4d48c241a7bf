#pragma once
// Which rank has which stages of a plan, for which micro-batches. The ranks of a stage's tensor parts are neighbours,
// and so are those of a pipeline: rank = (replica * pipeline + position) * tensor + part; or, with neighbours=replicas,
// those of a stage: rank = (position * tensor + part) * data + replica. The micro-batches of a batch
// (logical shards) are spread over the replicas in order, and within a replica over its lines: one, or two in opposite
// directions (schedules bidirectional, dualpipe), or one for each rank where the first layers are split by batch
// (plan/batch_split.h). Where replicas share their gradients (zero 2, 3), neighbouring micro-batches are on different
// replicas, so that sums over neighbours can be completed at once. Where ranks take micro-batches as they are free
// (tasks=free), each may have all of them. Pure arithmetic, the same on all ranks; immutable.

#include <vector>

#include "collective/shard_tree.h"
#include "plan/batch_split.h"
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
  int parts() const { return plan_.tensor; }  // of a stage, at most
  int parts(int stage) const { return plan_.splits_batch(stage) ? 1 : plan_.tensor; }
  int shards() const { return shards_; }
  bool splits_batch() const { return plan_.splits_batch(); }
  int lines() const { return splits_batch() ? plan_.tensor : plan_.goes_both_ways() ? 2 : 1; }
  bool splits_weights() const { return schedules_.front().splits_weights; }

  int replica_of(int rank) const { return plan_.replica_of(rank); }
  int place_of(int rank) const { return plan_.place_of(rank); }  // within its replica
  int position_of(int rank) const {                              // in its pipeline: whose list it has
    return splits_batch() ? place_of(rank) : place_of(rank) / plan_.tensor;
  }
  int line_of(int shard) const;
  int rank_of(int replica, int line, int stage, int part) const;
  int replica_of_shard(int shard) const;
  ShardRange shards_of_replica(int replica) const;
  ShardRange shards_of_line(int replica, int line) const;
  std::vector<HostedStage> hosted(int rank) const;  // in the order of stages
  // The ranks that have a part of a stage, in the order of their shards.
  std::vector<int> ranks_of_stage(int stage, int part) const;

  // The order in which a stage on a rank gets through its shards; empty: theirs.
  std::vector<int> order_of(int rank, int stage) const;
  // How many micro-batches' worth of a message between stages can be under way; 0: as their distance asks for.
  int message_buffers() const;
  // How many micro-batches a rank has memory for, if so many are alive in its list.
  int places(int alive) const { return plan_.is_message_driven() ? plan_.most_active() : alive; }
  int buffers_inside_stage() const;  // the same between parts of a stage

  // Of a replica; micro-batches count from its first shard.
  const PipelineSchedule& schedule(int replica) const { return schedules_[static_cast<std::size_t>(replica)]; }
  // The same as the checker sees it (plan/check.h), in which a stage is on one rank at a time.
  PipelineSchedule checked_schedule(int replica) const;
  std::vector<StageMessage> checked_messages(const std::vector<StageMessage>& messages) const;
  int checked_stage(int stage, int part) const;
  const std::vector<StageTask>& list(int rank) const {
    return schedule(replica_of(rank)).ranks[static_cast<std::size_t>(position_of(rank))];
  }

 private:
  BatchSplitShape batch_split(int replica) const;

  PlanSpec plan_;
  int shards_;
  const ScheduleKind* kind_;
  std::vector<PipelineSchedule> schedules_;  // by replica
};

}  // namespace echelon
