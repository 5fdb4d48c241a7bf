#include "parallel/step/rank_buckets.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

namespace {

std::vector<Bucket> quickest_buckets(ShardCompute& compute, ComputePhase& phase, const data::Batch& batch,
                                     const RankSum& sum) {
  // With more ranks than shards, or fewer samples than shards, rank 0 may have none.
  std::uint64_t samples = 0;
  for (std::uint64_t s = 0; s < phase.losses.size(); ++s) samples = std::max(samples, batch.samples_of(s).count);
  const Plan& plan = compute.plan(phase, static_cast<std::int64_t>(samples));
  const double shards = std::max(1, compute.shards_of_core(0).count());
  const double speed = std::max(1.0, plan.flops * shards / phase.seconds);
  // Buckets leave during the last shard.
  const auto pieces = ready_pieces(plan.graph, compute.table(), speed, plan.flops / speed * (shards - 1));
  return choose_buckets(pieces, [&](std::size_t bytes) { return sum.seconds(bytes); });
}

}  // namespace

std::vector<Bucket> one_bucket(const ComputePhase& phase) {
  const TrainedSpan &first = phase.segments.front(), &last = phase.segments.back();
  return {{first.offset, last.offset + last.size}};
}

std::vector<Bucket> agree_on_buckets(Team& team, ShardCompute& compute, ComputePhase& phase, const data::Batch& batch,
                                     const RankSum& sum) {
  std::vector<Bucket> buckets;
  if (team.world().rank() == 0) buckets = quickest_buckets(compute, phase, batch, sum);
  buckets.resize(phase.segments.size());  // there are never more; empty ones fill it up
  team.broadcast(std::as_writable_bytes(std::span(buckets)));
  std::erase_if(buckets, [](const Bucket& b) { return b.begin == b.end; });
  const bool valid = std::ranges::all_of(
      buckets, [&](const Bucket& b) { return b.begin < b.end && b.end <= compute.table().floats(); });
  if (buckets.empty() || !valid) fail("rank 0 has sent buckets that do not fit the model");
  return buckets;
}

}  // namespace echelon
