#pragma once
// The sum of contributions over ranks that have no memory in common: bucket by bucket, in a task of its own, while the
// cores still compute. Bit-identical for any number of ranks (the fixed tree of collective/shard_tree.h).
//
// One thread drives a rank's RankSum: begin(), then any core ready(), then finish(). All ranks begin with the same
// buckets in the same order.

#include <memory>
#include <span>
#include <vector>

#include "collective/group.h"
#include "collective/shard_tree.h"
#include "parallel/step/buckets.h"
#include "tensor/buffer.h"

namespace echelon {

class RankSum {
 public:
  // `mine` are this rank's partial sums over its shards (none if it has no shards), each `floats` numbers long; they
  // stay where they are. `cores` of this rank have shards. A collective call on `group`, which must outlive it.
  RankSum(Group& group, int shards, std::vector<PartialSum> mine, std::size_t floats, int cores);
  ~RankSum();

  std::span<float> total() { return total_.as<float>(); }

  void begin(const std::vector<Bucket>& buckets);  // kept by reference until finish()
  void ready(std::size_t bucket);                  // one core's part of it is complete; every core with shards says so
  void finish();                                   // all buckets are summed; rethrows what went wrong

  // The seconds that summing so many bytes takes, as measured at the start.
  double seconds(std::size_t bytes) const;

  // Where the time that finish() took went, in all: in waiting for others, by rank, and in sending and summing.
  std::span<const double> waited() const { return waited_; }
  double busy() const { return busy_; }

 private:
  class Exchange;  // the task
  Group& group_;
  Buffer total_;
  std::vector<double> waited_, before_, after_;  // the latter two: the task's waits around a step
  double busy_ = 0;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace echelon
