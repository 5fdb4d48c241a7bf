#include "plan/layout.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

PlanLayout::PlanLayout(const PlanSpec& plan, int shards)
    : plan_(plan), shards_(shards), kind_(find_schedule(plan.schedule)) {
  invariant(kind_ && plan.data > 0, "a plan has been checked before it is laid out");
  for (int replica = 0; replica < plan.data; ++replica)
    schedules_.push_back(kind_->make({plan.pipeline, shards_of_replica(replica).count(), plan.chunks}));
}

ShardRange PlanLayout::shards_of_replica(int replica) const {
  if (plan_.zero >= 2) return {replica, shards_, plan_.data};
  return shards_of(replica, plan_.data, shards_);
}

int PlanLayout::replica_of_shard(int shard) const {
  int replica = 0;
  while (!shards_of_replica(replica).contains(shard)) ++replica;
  return replica;
}

ShardRange PlanLayout::shards_of_line(int replica, int line) const {
  if (lines() == 1) return shards_of_replica(replica);
  const ShardRange all = shards_of_replica(replica), part = shards_of(line, lines(), all.count());
  return {all.first + part.first, all.first + part.last};
}

int PlanLayout::line_of(int shard) const {
  return lines() > 1 && shard >= shards_of_line(replica_of_shard(shard), 1).first ? 1 : 0;
}

int PlanLayout::rank_of(int replica, int line, int stage, int part) const {
  const int position = echelon::position_of(*kind_, stage, plan_.pipeline);
  return (replica * plan_.pipeline + (line == 0 ? position : plan_.pipeline - 1 - position)) * plan_.tensor + part;
}

std::vector<HostedStage> PlanLayout::hosted(int rank) const {
  std::vector<HostedStage> all;
  for (int line = 0; line < lines(); ++line)
    for (int stage = 0; stage < stages(); ++stage)
      if (const int part = rank % plan_.tensor; rank_of(replica_of(rank), line, stage, part) == rank)
        all.push_back({stage, part, line, shards_of_line(replica_of(rank), line)});
  std::ranges::stable_sort(all, {}, &HostedStage::stage);
  return all;
}

std::vector<int> PlanLayout::ranks_of_stage(int stage, int part) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < plan_.data; ++replica)
    for (int line = 0; line < lines(); ++line) ranks.push_back(rank_of(replica, line, stage, part));
  return ranks;
}

}  // namespace echelon
