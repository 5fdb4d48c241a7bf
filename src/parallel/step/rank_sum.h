#pragma once
// The sum of contributions over ranks that share no memory, bucket by bucket while the cores still compute
// (parallel/step/bucket_pipeline.h). Bit-identical for any number of ranks (the fixed tree of collective/shard_tree.h).
//
// One thread drives a rank's RankSum: begin(), then complete() from any core, then finish(). All ranks begin with the
// same buckets in the same order.

#include <memory>
#include <span>
#include <vector>

#include "collective/group.h"
#include "collective/shard_tree.h"
#include "parallel/step/bucket_pipeline.h"
#include "parallel/step/buckets.h"
#include "parallel/step/step_result.h"
#include "tensor/buffer.h"

namespace echelon {

class RankSum {
 public:
  // `mine` are this rank's partial sums over its shards (none if it has no shards), each `floats` numbers long; they
  // stay where they are. A collective call on `group`, which must outlive it.
  RankSum(Group& group, int shards, std::vector<PartialSum> mine, std::size_t floats);

  std::span<float> total() { return total_.as<float>(); }

  void begin(const std::vector<Bucket>& buckets);                     // kept by reference until finish()
  void complete(std::size_t bucket) { pipeline_->complete(bucket); }  // all of this rank's partial sums have it
  // All is summed; rethrows what went wrong. `since`: when this rank had done what the sum could hide behind.
  void finish(double since);

  // The seconds that summing so many bytes takes, as measured at the start.
  double seconds(std::size_t bytes) const;

  // Where the time that finish() took went, in all: in waiting for others, by rank, and in sending and summing.
  std::span<const double> waited() const { return waited_; }
  double busy() const { return busy_; }
  BucketWait longest_wait() const;  // none with more than 64 ranks

 private:
  void sum(Group& group, std::size_t bucket);
  void copy_waits(std::span<double> to);
  void add_bucket_waits(double seen);

  Group& group_;
  int shards_;
  std::vector<PartialSum> mine_;
  Buffer total_;
  const std::vector<Bucket>* buckets_ = nullptr;
  std::vector<double> waited_, before_, after_;  // the latter two: the task's waits around a step
  double busy_ = 0;
  // By bucket, and within it by rank: the task's waits in this step; what finish() has seen of them in all steps.
  std::vector<double> step_waits_, bucket_waits_;
  std::unique_ptr<BucketPipeline> pipeline_;  // last: its task uses the others
};

}  // namespace echelon
