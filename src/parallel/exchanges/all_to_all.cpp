// Every worker owns a part of the model and gets all workers' contributions to it, each by itself; the rule makes one
// of them, and all gather the answers. Rules that compare whole contributions need inner products between them: those
// of the parts are added up.

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

namespace {

constexpr const char* products_algorithm = "rabenseifner";

class AllToAll : public Exchange {
 public:
  explicit AllToAll(ExchangeParts parts)
      : parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        own_(owned(parts_.rank(), parts_.workers(), 0, parts_.floats())),
        each_side_(parts_.rule->make_each(own_.count(), parts_.workers())),
        values_(parts_.team->group().allocate_span<float>(parts_.floats())),
        came_(own_.count() * static_cast<std::size_t>(parts_.workers()) * sizeof(float)) {
    const auto n = static_cast<std::size_t>(parts_.workers());
    for (int i = 0; i < parts_.workers(); ++i) {
      out_.push_back(owned(i, parts_.workers(), 0, parts_.floats()));
      const auto at = static_cast<std::size_t>(i) * own_.count();
      in_.push_back({at, at + own_.count()});
      each_.push_back(came_.as<float>().subspan(at, own_.count()));
    }
    if (parts_.rule->traits().compares_each) products_.resize(n * n);
  }

  double exchange(const StepInfo&) override {
    Group& group = parts_.team->group();
    worker_->contribute({0, values_.size()}, 1, values_);
    all_to_all(group, const_typed_span(values_), out_, typed_span(came_.as<float>()), in_, "contributions");
    if (!products_.empty()) {
      each_side_->compare(each_, products_);
      all_reduce(group, std::span(products_), Reduction::sum,
                 {.algorithm = &find_algorithm(products_algorithm), .name = "products"});
    }
    each_side_->merge(each_, products_, values_.subspan(own_.begin, own_.count()));
    all_gather_owned(group, values_.data(), 0, values_.size());
    worker_->apply({0, values_.size()}, values_);
    return 1;
  }

  void drain() override {}

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    add_states(all, "each ", each_side_->state());
    return all;
  }

 private:
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  Range own_;
  std::unique_ptr<EachSide> each_side_;
  std::span<float> values_;
  Buffer came_;  // every worker's numbers of the own part
  std::vector<Range> out_, in_;
  std::vector<std::span<const float>> each_;
  std::vector<double> products_;
};

class AllToAllKind : public ExchangeKind {
 public:
  ExchangeTraits traits() const override { return {.in_lockstep = true, .keeps_apart = true, .plain_numbers = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse(problems, !c.rule->traits().sees_each,
           fmt::format("exchange all_to_all keeps the workers' contributions apart, and rule {} wants {}: take rule "
                       "krum or trimmed_mean, or exchange owner_shard",
                       c.rule_name, c.rule->traits().peers ? "neighbours" : "their sum"));
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<AllToAll>(std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: parts to their owners, answers to all; and n^2 inner products where the rule compares";
  }
  std::string messages_text() const override { return "2 n (n-1), and those of an all-reduce where the rule compares"; }
  Traffic traffic(const TrafficQuery& c) const override {
    Traffic sum;
    for (int i = 0; i < c.workers; ++i) {
      const auto sent = shard_sum_traffic(i, c.workers, c.workers, c.floats);
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
      if (!c.rule.compares_each) continue;
      const auto count = static_cast<std::size_t>(c.workers) * static_cast<std::size_t>(c.workers);
      const auto products =
          find_algorithm(products_algorithm).traffic({.n = c.workers, .index = i, .count = count, .item = 8});
      sum = sum + Traffic{static_cast<double>(products.messages), static_cast<double>(products.bytes)};
    }
    return sum;
  }
};

}  // namespace

ExchangePart all_to_all() {
  return {{"all_to_all", "every worker owns 1/n, and sees there what each worker says by itself", {}},
          [](OptionReader&) -> std::unique_ptr<const ExchangeKind> { return std::make_unique<AllToAllKind>(); }};
}

}  // namespace echelon::exchanges
