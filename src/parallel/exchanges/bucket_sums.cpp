#include "parallel/exchanges/bucket_sums.h"

#include <algorithm>

namespace echelon::exchanges {

namespace {
constexpr std::size_t most_buckets = 48;  // each one costs the latency of its messages
}  // namespace

BucketSums::BucketSums(const ExchangeParts& parts, WorkerSide& worker, Sum sum, bool makes_answers)
    : parts_(parts),
      worker_(worker),
      add_up_(std::move(sum)),
      sum_(parts.team->group().allocate_span<float>(parts.floats())),
      makes_answers_(makes_answers),
      overlaps_(parts.order.is_early),
      pipeline_(parts.team->group(),
                {.exchange = [this](Group& g, std::uint64_t, std::size_t b) { add_up_(g, b, sum_of(buckets_[b])); }}) {
  if (overlaps_) {
    const auto complete = [this](std::size_t bucket) { pipeline_.complete(bucket); };
    std::size_t bytes = std::max<std::size_t>(1, parts.order.bytes);
    for (parts.trainer->send_buckets(bytes, complete); parts.trainer->buckets().size() > most_buckets; bytes *= 2)
      parts.trainer->send_buckets(bytes, complete);
    for (const Bucket& b : parts.trainer->buckets()) add({b.begin, b.end});
  } else {
    add({0, parts.floats()});
  }
  pipeline_.set_buckets(buckets_.size());
}

void BucketSums::add(Range range) {
  const bool needs_shared = !makes_answers_ && !parts_.rule->traits().answers_mean;
  buckets_.push_back({range, needs_shared ? parts_.rule->make_shared(parts_.place(range)) : nullptr});
}

void BucketSums::begin_step() {
  if (overlaps_) start();
}

void BucketSums::start() {
  ++rounds_;
  pipeline_.begin();
}

void BucketSums::conclude(const StepInfo& info) {
  if (!overlaps_) {
    start();
    pipeline_.complete(0);
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    pipeline_.wait(b);
    const SummedBucket& bucket = buckets_[b];
    const std::span<float> mean = sum_of(bucket);
    if (bucket.shared) bucket.shared->conclude(mean, info.lr);
    worker_.apply(bucket.range, bucket.shared ? bucket.shared->answer() : mean);
  }
}

void BucketSums::read_model(std::span<float> out) const {
  for (const SummedBucket& b : buckets_)
    if (b.shared) std::ranges::copy(b.shared->model(), out.begin() + static_cast<std::ptrdiff_t>(b.range.begin));
}

std::vector<StateSpan> BucketSums::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i].shared) add_states(all, fmt::format("shared {} ", i), buckets_[i].shared->state());
  all.push_back(as_state("rounds", rounds_));
  return all;
}

}  // namespace echelon::exchanges
