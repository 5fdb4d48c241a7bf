#include "parallel/step/rank_sum.h"

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/link_costs.h"
#include "collective/shard_sum.h"

namespace echelon {

RankSum::RankSum(Group& group, int shards, std::vector<PartialSum> mine, std::size_t floats)
    : group_(group),
      shards_(shards),
      mine_(std::move(mine)),
      total_(floats * sizeof(float)),
      waited_(static_cast<std::size_t>(group.world().size())),
      before_(waited_.size()),
      after_(waited_.size()) {
  link_costs(group);  // measured now, while all ranks are here
  pipeline_ = std::make_unique<BucketPipeline>(
      group, BucketPipeline::Stages{[this](Group& g, std::uint64_t, std::size_t b) { sum(g, (*buckets_)[b]); }});
}

// In the pipeline's task.
void RankSum::sum(Group& group, const Bucket& b) {
  all_reduce_shards(group,
                    {.shards = shards_, .partials = mine_, .begin = b.begin, .end = b.end, .out = total().data()});
}

void RankSum::begin(const std::vector<Bucket>& buckets) {
  copy_waits(before_);
  buckets_ = &buckets;
  if (pipeline_->buckets() != buckets.size()) pipeline_->set_buckets(buckets.size());
  pipeline_->begin();
  if (mine_.empty())  // no shards, so nobody will
    for (std::size_t b = 0; b < buckets.size(); ++b) pipeline_->complete(b);
}

void RankSum::finish() {
  const double begin = group_.world().now();
  pipeline_->finish();
  // What was hidden behind the computation does not count: the task's waits are cut down to what was seen here.
  const double seen = group_.world().now() - begin;
  copy_waits(after_);
  double waits = 0;
  for (std::size_t r = 0; r < waited_.size(); ++r) waits += after_[r] - before_[r];
  const double share = waits > seen ? seen / waits : 1;
  for (std::size_t r = 0; r < waited_.size(); ++r) waited_[r] += share * (after_[r] - before_[r]);
  busy_ += std::max(0.0, seen - waits);
}

// Seconds that the task has waited for each rank so far. Only while no step is under way.
void RankSum::copy_waits(std::span<double> to) {
  for (const auto& [rank, seconds] : pipeline_->group().wait_policy().waited())
    to[static_cast<std::size_t>(rank)] = seconds;
}

double RankSum::seconds(std::size_t bytes) const {
  return find_algorithm("owners").seconds(static_cast<double>(bytes), group_.size(), link_costs(group_));
}

}  // namespace echelon
