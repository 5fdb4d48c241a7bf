#include "parallel/step/rank_sum.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "collective/algorithms.h"
#include "collective/link.h"
#include "collective/shard_sum.h"

namespace echelon {

namespace {
constexpr double long_time = 1e9;  // seconds: the collectives inside have their own, shorter timeout
}

// Sums the buckets of a step in their order, each as soon as all cores have it.
class RankSum::Exchange {
 public:
  Exchange(Group& group, int shards, std::vector<PartialSum> mine, float* total, int cores)
      : async_group_(group.async_group()),
        world_(group.world()),
        shards_(shards),
        cores_(cores),
        mine_(std::move(mine)),
        total_(total),
        wake_(world_.make_event()),
        done_(world_.make_event()),
        task_(world_.spawn("exchange", [this] { run(); })) {}

  ~Exchange() {
    // A rank that fails in the middle of a step: the task may be waiting for others who wait for this one.
    if (std::uncaught_exceptions() > 0 && done_->count() < begun_) world_.abort("it stopped in the middle of a step");
    closing_ = true;
    wake_->notify();
  }

  void begin(const std::vector<Bucket>& buckets) {
    if (missing_.size() < buckets.size()) missing_ = std::vector<std::atomic<int>>(buckets.size());
    for (std::size_t b = 0; b < buckets.size(); ++b) missing_[b] = cores_;
    buckets_ = &buckets;
    ++begun_;
    wake_->notify();
  }

  void ready(std::size_t bucket) {
    if (--missing_[bucket] == 0) wake_->notify();
  }

  void finish() {
    done_->wait(begun_, world_.now() + long_time);
    if (failure_) std::rethrow_exception(failure_);
  }

  // Seconds that the task has waited for each rank so far. Only between finish() and begin().
  void copy_waits(std::span<double> to) {
    for (const auto& [rank, seconds] : async_group_.wait_policy().waited())
      to[static_cast<std::size_t>(rank)] = seconds;
  }

 private:
  void run() {
    try {
      for (std::uint64_t step = 1;; ++step) {
        if (!await([&] { return begun_ >= step; })) return;
        for (std::size_t b = 0; b < buckets_->size(); ++b) {
          if (!await([&] { return missing_[b] == 0; })) return;
          sum((*buckets_)[b]);
        }
        done_->notify();
      }
    } catch (...) {
      failure_ = std::current_exception();
      done_->notify();
    }
  }

  template <typename Condition>
  bool await(const Condition& holds) {  // false: there is nothing more to do
    for (;;) {
      const std::uint64_t seen = wake_->count();
      if (closing_) return false;
      if (holds()) return true;
      wake_->wait(seen + 1, world_.now() + long_time);
    }
  }

  void sum(const Bucket& b) {
    all_reduce_shards(async_group_,
                      {.shards = shards_, .partials = mine_, .begin = b.begin, .end = b.end, .out = total_});
  }

  Group async_group_;
  World& world_;
  int shards_, cores_;
  std::vector<PartialSum> mine_;
  float* total_;
  const std::vector<Bucket>* buckets_ = nullptr;
  std::vector<std::atomic<int>> missing_;  // cores that have not said ready, by bucket
  std::atomic<std::uint64_t> begun_ = 0;   // steps
  std::atomic<bool> closing_ = false;
  std::exception_ptr failure_;
  std::unique_ptr<Event> wake_, done_;
  std::unique_ptr<Task> task_;  // last: ends before what it uses
};

RankSum::RankSum(Group& group, int shards, std::vector<PartialSum> mine, std::size_t floats, int cores)
    : group_(group),
      total_(floats * sizeof(float)),
      waited_(static_cast<std::size_t>(group.world().size())),
      before_(waited_.size()),
      after_(waited_.size()) {
  link_of(group);  // measured now, while all are at it
  exchange_ = std::make_unique<Exchange>(group, shards, std::move(mine), total().data(), cores);
}

RankSum::~RankSum() = default;

void RankSum::begin(const std::vector<Bucket>& buckets) {
  exchange_->copy_waits(before_);
  exchange_->begin(buckets);
}

void RankSum::ready(std::size_t bucket) { exchange_->ready(bucket); }

void RankSum::finish() {
  const double begin = group_.world().now();
  exchange_->finish();
  // What was hidden behind the computation does not count: the task's waits are cut down to what was seen here.
  const double seen = group_.world().now() - begin;
  exchange_->copy_waits(after_);
  double waits = 0;
  for (std::size_t r = 0; r < waited_.size(); ++r) waits += after_[r] - before_[r];
  const double share = waits > seen ? seen / waits : 1;
  for (std::size_t r = 0; r < waited_.size(); ++r) waited_[r] += share * (after_[r] - before_[r]);
  busy_ += std::max(0.0, seen - waits);
}

double RankSum::seconds(std::size_t bytes) const {
  return owners_all_reduce.seconds(static_cast<double>(bytes), group_.size(), link_of(group_));
}

}  // namespace echelon
