#pragma once
// A sum over all workers after which everybody concludes alike, in buckets that leave while backward still runs: what
// exchanges in lock-step have in common. The buckets are those in which the gradient becomes complete (as the order
// says), or one for all. A task of its own (collective/async_group.h) sums them one after the other, each as soon as it
// is there; how a bucket is summed is the exchange's.
//
// One thread drives it. Make it the last member of its exchange: its task ends before what `sum` uses goes away.

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/async_group.h"
#include "parallel/exchange.h"

namespace echelon::exchanges {

class BucketSums {
 public:
  // Leaves the mean over all workers in `out`, which is the bucket's; runs in the task.
  using Sum = std::function<void(Group& group, std::size_t bucket, std::span<float> out)>;

  // Collective. Everything outlives it.
  BucketSums(const ExchangeParts& parts, WorkerSide& worker, Sum sum);
  // In the middle of a step: buckets that have not become ready are not summed, and the async_group tells the others.
  ~BucketSums();

  std::size_t count() const { return buckets_.size(); }
  Range range(std::size_t bucket) const { return buckets_[bucket]->range; }
  std::int64_t rounds() const { return rounds_; }  // begun

  void begin_step();                    // before backward: buckets may become ready from now on
  void conclude(const StepInfo& info);  // after it: waits for all sums and applies them; rethrows what went wrong
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();

 private:
  struct PendingBucket {
    Range range;
    std::unique_ptr<SharedSide> shared;  // null if the mean is the answer
    std::unique_ptr<Event> ready;
    std::uint64_t times = 0;  // that it was started
    Pending pending;
  };
  void add(Range range);
  void start();
  std::span<float> numbers_of(const PendingBucket& p) {
    return sum_.as<float>().subspan(p.range.begin, p.range.count());
  }

  const ExchangeParts& parts_;
  WorkerSide& worker_;
  Sum add_up_;
  Buffer sum_;
  bool overlaps_ = false;  // else there is one bucket, and it starts after backward
  std::vector<std::unique_ptr<PendingBucket>> buckets_;
  std::int64_t rounds_ = 0;
  std::atomic<bool> closing_ = false;  // no bucket becomes ready any more
  AsyncGroup async_group_;             // last
};

}  // namespace echelon::exchanges
