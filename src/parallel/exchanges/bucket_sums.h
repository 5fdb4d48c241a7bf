#pragma once
// A mean over all workers from which every worker computes the same answer: what exchanges in lock-step have in common.
// (Or the exchange itself makes the answer, where only some workers conclude.)
// The buckets are those in which the gradient becomes complete (as the order says), or one for everything. The pipeline
// (parallel/step/bucket_pipeline.h) sums them while backward still runs; how a bucket is summed is up to the exchange.
//
// One thread drives it. Make it the last member of its exchange: its task ends before what `sum` uses is destroyed.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/step/bucket_pipeline.h"

namespace echelon::exchanges {

class BucketSums {
 public:
  // Leaves the mean over all workers, or the answer, in `out`, which is the bucket's; runs in the task.
  using Sum = std::function<void(Group& group, std::size_t bucket, std::span<float> out)>;

  // Collective. Everything outlives it.
  BucketSums(const ExchangeParts& parts, WorkerSide& worker, Sum sum, bool makes_answers = false);

  std::size_t count() const { return buckets_.size(); }
  Range range(std::size_t bucket) const { return buckets_[bucket].range; }
  std::int64_t rounds() const { return rounds_; }  // begun

  void begin_step();                    // before backward: buckets may become ready from now on
  void conclude(const StepInfo& info);  // after it: waits for all sums and applies them; rethrows what went wrong
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();

 private:
  struct SummedBucket {
    Range range;
    std::unique_ptr<SharedSide> shared;  // null if what comes is the answer
  };
  void add(Range range);
  void start();
  std::span<float> sum_of(const SummedBucket& b) { return sum_.subspan(b.range.begin, b.range.count()); }

  const ExchangeParts& parts_;
  WorkerSide& worker_;
  Sum add_up_;
  std::span<float> sum_;  // in shared memory where there is some: the collectives read it in place
  bool makes_answers_;    // `add_up_` does
  bool overlaps_;         // else there is one bucket, and it starts after backward
  std::vector<SummedBucket> buckets_;
  std::int64_t rounds_ = 0;
  BucketPipeline pipeline_;  // last
};

}  // namespace echelon::exchanges
