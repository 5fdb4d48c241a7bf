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
  void finish();                                                      // all is summed; rethrows what went wrong

  // The seconds that summing so many bytes takes, as measured at the start.
  double seconds(std::size_t bytes) const;

  // Where the time that finish() took went, in all: in waiting for others, by rank, and in sending and summing.
  std::span<const double> waited() const { return waited_; }
  double busy() const { return busy_; }

 private:
  void sum(Group& group, const Bucket& bucket);
  void copy_waits(std::span<double> to);

  Group& group_;
  int shards_;
  std::vector<PartialSum> mine_;
  Buffer total_;
  const std::vector<Bucket>* buckets_ = nullptr;
  std::vector<double> waited_, before_, after_;  // the latter two: the task's waits around a step
  double busy_ = 0;
  std::unique_ptr<BucketPipeline> pipeline_;  // last: its task uses the others
};

}  // namespace echelon
