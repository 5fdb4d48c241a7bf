#include "plan/layout.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

PlanLayout::PlanLayout(const PlanSpec& plan, int shards)
    : plan_(plan), shards_(shards), kind_(find_schedule(plan.schedule)) {
  invariant(kind_ && plan.data > 0, "a plan has been checked before it is laid out");
  for (int replica = 0; replica < plan.data; ++replica)
    schedules_.push_back(splits_batch()
                             ? batch_split_schedule(batch_split(replica))
                             : kind_->make({plan.pipeline, shards_of_replica(replica).count(), plan.chunks}));
}

BatchSplitShape PlanLayout::batch_split(int replica) const {
  return {plan_.tensor,
          shards_of_replica(replica).count(),
          stages(),
          plan_.scheme.empty() ? "c" : plan_.scheme,
          plan_.alternating > 0,
          plan_.segments};
}

ShardRange PlanLayout::shards_of_replica(int replica) const {
  if (plan_.frees_tasks()) return {0, shards_};  // any of them
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
  if (lines() == 1) return 0;
  for (int replica = 0; replica < plan_.data; ++replica)
    for (int line = 0; line < lines(); ++line)
      if (shard < shards_of_line(replica, line).last) return line;
  return 0;
}

int PlanLayout::rank_of(int replica, int line, int stage, int part) const {
  if (splits_batch()) return plan_.rank_at(replica, plan_.splits_batch(stage) ? line : part);
  const int position = echelon::position_of(*kind_, stage, plan_.pipeline);
  return plan_.rank_at(replica, (line == 0 ? position : plan_.pipeline - 1 - position) * plan_.tensor + part);
}

std::vector<HostedStage> PlanLayout::hosted(int rank) const {
  std::vector<HostedStage> all;
  const int replica = replica_of(rank);
  if (splits_batch()) {
    const int position = position_of(rank);
    for (int stage = 0; stage < stages(); ++stage)
      all.push_back(plan_.splits_batch(stage) ? HostedStage{stage, 0, position, shards_of_line(replica, position)}
                                              : HostedStage{stage, position, 0, shards_of_replica(replica)});
    return all;
  }
  for (int line = 0; line < lines(); ++line)
    for (int stage = 0; stage < stages(); ++stage)
      if (const int part = place_of(rank) % plan_.tensor; rank_of(replica, line, stage, part) == rank)
        all.push_back({stage, part, line, shards_of_line(replica, line)});
  // Collectives over the ranks of a stage are called in the order of stages, on all ranks.
  std::ranges::stable_sort(all, {}, &HostedStage::stage);
  return all;
}

std::vector<int> PlanLayout::ranks_of_stage(int stage, int part) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < plan_.data; ++replica)
    for (int line = 0; line < lines(); ++line)
      if (const int rank = rank_of(replica, line, stage, part); ranks.empty() || ranks.back() != rank)
        ranks.push_back(rank);
  return ranks;
}

std::vector<int> PlanLayout::order_of(int rank, int stage) const {
  if (!splits_batch() || plan_.splits_batch(stage)) return {};
  std::vector<int> order = batch_split_order(batch_split(replica_of(rank)));
  for (int& shard : order) shard += shards_of_replica(replica_of(rank)).first;
  return order;
}

int PlanLayout::message_buffers() const {
  if (plan_.is_message_driven()) return plan_.most_active();
  if (!splits_batch()) return 0;
  const BatchSplitShape shape = batch_split(0);
  return shape.buffers();
}

int PlanLayout::buffers_inside_stage() const {
  return plan_.segments.empty() ? 0 : shards_of_replica(0).count() / plan_.tensor;
}

PipelineSchedule PlanLayout::checked_schedule(int replica) const {
  return splits_batch() ? with_parts_as_stages(schedule(replica), batch_split(replica)) : schedule(replica);
}

std::vector<StageMessage> PlanLayout::checked_messages(const std::vector<StageMessage>& messages) const {
  return splits_batch() ? with_parts_as_stages(messages, batch_split(0)) : messages;
}

int PlanLayout::checked_stage(int stage, int part) const {
  return splits_batch() ? batch_split(0).part_as_stage(stage, part) : stage;
}

}  // namespace echelon
