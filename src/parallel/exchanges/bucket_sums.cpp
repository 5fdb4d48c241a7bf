#include "parallel/exchanges/bucket_sums.h"

#include <algorithm>
#include <limits>

namespace echelon::exchanges {

namespace {
constexpr double forever =
    std::numeric_limits<double>::infinity();  // the collectives inside have their own wait_policy
constexpr std::size_t most_buckets = 48;      // a async_group takes 64 orders
}  // namespace

BucketSums::BucketSums(const ExchangeParts& parts, WorkerSide& worker, Sum sum)
    : parts_(parts),
      worker_(worker),
      add_up_(std::move(sum)),
      sum_(parts.floats() * sizeof(float)),
      async_group_(parts.team->group()) {
  overlaps_ = parts.order.is_early();
  if (!overlaps_) {
    add({0, parts.floats()});
    return;
  }
  std::size_t bytes = std::max<std::size_t>(1, parts.order.bytes);
  const auto is_ready = [this](const Bucket& bucket) {
    for (auto& p : buckets_)
      if (p->range.begin == bucket.begin) p->ready->notify();
  };
  for (parts.trainer->send_buckets(bytes, is_ready); parts.trainer->buckets().size() > most_buckets; bytes *= 2)
    parts.trainer->send_buckets(bytes, is_ready);
  for (const Bucket& b : parts.trainer->buckets()) add({b.begin, b.end});
}

BucketSums::~BucketSums() {
  closing_ = true;
  for (auto& p : buckets_) p->ready->notify();
}

void BucketSums::add(Range range) {
  auto p = std::make_unique<PendingBucket>();
  p->range = range;
  if (!parts_.rule->traits().answers_mean) p->shared = parts_.rule->make_shared(parts_.place(range));
  p->ready = parts_.world->make_event();
  buckets_.push_back(std::move(p));
}

void BucketSums::begin_step() {
  if (overlaps_) start();
}

// The async_group has all buckets in order, and waits for each until it is there.
void BucketSums::start() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    PendingBucket& p = *buckets_[i];
    ++p.times;
    p.pending = async_group_.start([this, i](Group& group) {
      PendingBucket& bucket = *buckets_[i];
      bucket.ready->wait(bucket.times, forever);
      if (closing_) return;
      add_up_(group, i, numbers_of(bucket));
    });
  }
  ++rounds_;
}

void BucketSums::conclude(const StepInfo& info) {
  if (!overlaps_) {
    start();
    buckets_.front()->ready->notify();
  }
  for (auto& p : buckets_) {
    p->pending.wait(forever);
    const std::span<float> mean = numbers_of(*p);
    if (p->shared) p->shared->conclude(mean, info.lr);
    worker_.apply(p->range, p->shared ? p->shared->answer() : mean);
  }
}

void BucketSums::read_model(std::span<float> out) const {
  for (const auto& p : buckets_)
    if (p->shared) std::ranges::copy(p->shared->model(), out.begin() + static_cast<std::ptrdiff_t>(p->range.begin));
}

std::vector<StateSpan> BucketSums::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i]->shared) add_states(all, fmt::format("shared {} ", i), buckets_[i]->shared->state());
  all.push_back(as_state("rounds", rounds_));
  return all;
}

}  // namespace echelon::exchanges
