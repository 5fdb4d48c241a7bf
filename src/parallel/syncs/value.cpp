// Value-bounded asynchronous parallel (Wei et al. 2015): a worker waits while some shared weight is farther than
// `bound` from what the slowest worker has read. The slowest workers never wait themselves.

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class ValueGate : public AnswerGate {
 public:
  ValueGate(double bound, int workers, std::span<const float> weights) : bound_(bound) {
    for (int w = 0; w < workers; ++w) {
      read_.emplace_back(weights.size_bytes());
      std::ranges::copy(weights, read_.back().as<float>().begin());
    }
  }
  bool may_answer(Rank reader, const KeyProgress& progress, std::span<const float> weights) override {
    const double far = moved(reader, progress, weights);
    if (far > bound_) return false;
    most_moved_ = std::max(most_moved_, far);
    return true;
  }
  void was_answered(Rank reader, std::span<const float> weights) override {
    std::ranges::copy(weights, read_[static_cast<std::size_t>(reader)].as<float>().begin());
  }
  double most_moved() const override { return most_moved_; }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all{as_state("most moved", most_moved_)};
    for (std::size_t w = 0; w < read_.size(); ++w) all.push_back(as_state(fmt::format("read by {}", w), read_[w]));
    return all;
  }

 private:
  // How far the weights are from what those workers have read that have made the fewest steps; 0 for these workers.
  double moved(Rank reader, const KeyProgress& progress, std::span<const float> weights) const {
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    const auto steps = [&](Rank rank) { return progress.steps[static_cast<std::size_t>(rank)]; };
    for (const Rank r : progress.writers) slowest = std::min(slowest, steps(r));
    if (steps(reader) <= slowest) return 0;
    float most = 0;
    for (const Rank r : progress.writers) {
      if (steps(r) > slowest) continue;
      const std::span<const float> then = read_[static_cast<std::size_t>(r)].as<float>();
      for (std::size_t i = 0; i < weights.size(); ++i) most = std::max(most, std::abs(weights[i] - then[i]));
    }
    return most;
  }

  double bound_, most_moved_ = 0;
  std::vector<Buffer> read_;  // by worker: the weights that it has read last
};

class Value : public SharingWork {
 public:
  Value(double bound, const WorkSharing& work) : SharingWork(work), bound_(bound) {}
  SyncTraits traits() const override { return {.per_worker = true}; }
  std::unique_ptr<AnswerGate> make_gate(int workers, std::span<const float> weights) const override {
    return std::make_unique<ValueGate>(bound_, workers, weights);
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    SharingWork::accepts(c, facts, problems);
    refuse(problems, at_own_pace(c) && c.rule->traits().quantity == RuleTraits::Quantity::weights,
           fmt::format("sync value bounds how far gradients may move the weights, but rule {} exchanges "
                       "weights: take sync async",
                       c.rule_name));
  }
  std::vector<Figure> figures(const ServerCounts& counts) const override {
    std::vector<Figure> figures = SharingWork::figures(counts);
    figures.emplace_back("most_moved", counts.moved);
    return figures;
  }

 private:
  double bound_;
};

}  // namespace

SyncPart value() {
  return {{"value", "wait while the parameters are farther from what the slowest has read",
           with_work_settings({{"bound", "0.1", "of any parameter"}})},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            const double bound = options.number("bound", 0.1, 0);
            return std::make_unique<Value>(bound, read_work(options));
          }};
}

}  // namespace echelon::syncs
