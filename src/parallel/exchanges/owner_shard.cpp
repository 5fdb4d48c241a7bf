// Every worker is the server for its part of the model: contributions are reduced and scattered to the owners, each
// concludes for its part, and all gather the answers. The sums are taken in the one fixed tree
// (collective/shard_sum.h).

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

namespace {

class OwnerShard : public Exchange {
 public:
  explicit OwnerShard(ExchangeParts parts)
      : parts_(std::move(parts)),
        own_(owned(parts_.rank(), parts_.workers(), 0, parts_.floats())),
        worker_(parts_.rule->make_worker(parts_.view())),
        shared_(parts_.rule->make_shared(parts_.place(own_))),
        values_(parts_.team->group().allocate_span<float>(parts_.floats())) {}

  double exchange(const StepInfo& info) override {
    Group& group = parts_.team->group();
    const std::span<float> values = values_;
    const bool gradient = parts_.rule->traits().quantity == RuleTraits::Quantity::gradient;
    worker_->contribute({0, values.size()}, gradient ? info.share : 1.0 / parts_.workers(), values);
    const PartialSum mine{parts_.rank(), parts_.rank() + 1, values.data()};
    reduce_scatter_shards(
        group, {.shards = parts_.workers(), .partials = {&mine, 1}, .end = values.size(), .out = values.data()});
    const std::span<float> part = values.subspan(own_.begin, own_.count());
    shared_->conclude(part, info.lr);
    std::ranges::copy(shared_->answer(), part.begin());
    all_gather_owned(group, values.data(), 0, values.size());
    worker_->apply({0, values.size()}, values);
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void drain() override {}

  void read_model(std::span<float> out) override {
    std::ranges::copy(shared_->model(), out.begin() + static_cast<std::ptrdiff_t>(own_.begin));
    all_gather_owned(parts_.team->group(), out.data(), 0, out.size());
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    add_states(all, "owned ", shared_->state());
    return all;
  }

 private:
  ExchangeParts parts_;
  Range own_;
  std::unique_ptr<WorkerSide> worker_;
  std::unique_ptr<SharedSide> shared_;
  std::span<float> values_;  // in shared memory where there is some: the owners read it in place
};

class OwnerShardKind : public ExchangeKind {
 public:
  ExchangeTraits traits() const override { return {.in_lockstep = true, .sums = true, .plain_numbers = true}; }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<OwnerShard>(std::move(parts));
  }
  std::string messages_text() const override { return "2 n (n-1)"; }
  std::string traffic_text() const override { return "2 (n-1) W: parts to their owners, answers to all"; }
  Traffic traffic(const TrafficQuery& c) const override {
    Traffic sum;
    for (int i = 0; i < c.workers; ++i) {
      const auto sent = shard_sum_traffic(i, c.workers, c.workers, c.floats);
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }
};

std::unique_ptr<const ExchangeKind> make_owner_shard(OptionReader&) { return std::make_unique<OwnerShardKind>(); }

}  // namespace

ExchangePart owner_shard() {
  return {{"owner_shard", "every worker owns 1/n: reduce-scatter, step, all-gather", {}}, make_owner_shard};
}

}  // namespace echelon::exchanges
