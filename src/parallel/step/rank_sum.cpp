#include "parallel/step/rank_sum.h"

#include <algorithm>
#include <numeric>

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
      group, BucketPipeline::Stages{[this](Group& g, std::uint64_t, std::size_t b) { sum(g, b); }});
}

// In the pipeline's task.
void RankSum::sum(Group& group, std::size_t bucket) {
  const Bucket& b = (*buckets_)[bucket];
  const auto& waited = group.wait_policy().waited();
  double* const waits = step_waits_.empty() ? nullptr : &step_waits_[bucket * waited_.size()];
  if (waits)
    for (const auto& [rank, seconds] : waited) waits[rank] = -seconds;
  all_reduce_shards(group,
                    {.shards = shards_, .partials = mine_, .begin = b.begin, .end = b.end, .out = total().data()});
  if (waits)
    for (const auto& [rank, seconds] : waited) waits[rank] += seconds;
}

void RankSum::begin(const std::vector<Bucket>& buckets) {
  copy_waits(before_);
  buckets_ = &buckets;
  if (pipeline_->buckets() != buckets.size()) {
    pipeline_->set_buckets(buckets.size());
    constexpr std::size_t most_ranks = 64;
    if (waited_.size() <= most_ranks) step_waits_.assign(buckets.size() * waited_.size(), 0);
    bucket_waits_.assign(step_waits_.size(), 0);
  }
  pipeline_->begin();
  if (mine_.empty())  // no shards, so nobody will
    for (std::size_t b = 0; b < buckets.size(); ++b) pipeline_->complete(b);
}

void RankSum::finish(double since) {
  pipeline_->finish();
  // What was hidden behind the computation does not count: the task's waits are cut down to what was seen here.
  const double seen = group_.world().now() - since;
  copy_waits(after_);
  double waits = 0;
  for (std::size_t r = 0; r < waited_.size(); ++r) waits += after_[r] - before_[r];
  const double share = waits > seen ? seen / waits : 1;
  for (std::size_t r = 0; r < waited_.size(); ++r) waited_[r] += share * (after_[r] - before_[r]);
  busy_ += std::max(0.0, seen - waits);
  add_bucket_waits(seen);
}

// What was seen are the last of the task's waits: those before were hidden.
void RankSum::add_bucket_waits(double seen) {
  const std::size_t ranks = waited_.size();
  for (std::size_t b = step_waits_.size() / ranks; b-- > 0 && seen > 0;) {
    const std::span<const double> waits = std::span(step_waits_).subspan(b * ranks, ranks);
    const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
    const double share = sum > seen ? seen / sum : 1;
    for (std::size_t r = 0; r < ranks; ++r) bucket_waits_[b * ranks + r] += share * waits[r];
    seen -= sum;
  }
}

BucketWait RankSum::longest_wait() const {
  const auto longest = std::ranges::max_element(bucket_waits_);
  if (longest == bucket_waits_.end() || *longest <= 0) return {};
  const auto at = static_cast<std::size_t>(longest - bucket_waits_.begin());
  return {.bucket = static_cast<int>(at / waited_.size()),
          .buckets = static_cast<int>(bucket_waits_.size() / waited_.size()),
          .rank = static_cast<int>(at % waited_.size()),
          .seconds = *longest};
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
