// Model-parallel updates of chosen blocks (STRADS, Kim et al. 2016). The model is cut into blocks of `block` numbers at
// most, none of which crosses a parameter. Every step goes through three parts, the same on all workers:
//
//   schedule    draw `blocks` of them without repetition, each with a probability that grows with its last change; a
//               block is put back if a layer right before or after its own has been drawn already (`dependencies`):
//               steps in both at once would not be those that the gradient was computed for
//   update      contribute the gradient of the chosen blocks, which are sent side by side
//   aggregate   the owners of pieces sum them in the fixed tree; then every worker has the sums, and the chosen
//               blocks' shared sides make their steps; all others stay as they are
//
// What changes little is scheduled seldom, and never not at all: a block's weight in the draw is its mean change in the
// step that it was last chosen for, plus `floor` of the mean over all blocks; blocks that were never chosen come first.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

namespace {

struct ScheduledSettings {
  std::size_t blocks = 8, block = 4096;  // in a step; numbers of one
  double floor = 0.1;
  bool dependencies = true;
};

struct Block {
  Range range;
  int layer = 0;  // in the order of the parameters
};

std::string layer_of_parameter(const std::string& name) { return name.substr(0, name.rfind('.')); }

std::vector<Block> cut_into_blocks(const ParameterTable& table, const std::vector<TrainedSpan>& segments,
                                   std::size_t most) {
  std::vector<Block> blocks;
  int layer = -1;
  std::string before;
  for (const ParameterTable::Entry& e : table.entries()) {
    const auto trained = std::ranges::find(segments, e.offset, &TrainedSpan::offset);
    if (trained == segments.end() || trained->statistic) continue;
    if (const std::string name = layer_of_parameter(e.parameter.name); layer < 0 || name != before) {
      ++layer;
      before = name;
    }
    for (std::size_t at = e.offset; at < e.offset + e.size; at += most)
      blocks.push_back({{at, std::min(at + most, e.offset + e.size)}, layer});
  }
  return blocks;
}

class Scheduled : public Exchange {
 public:
  Scheduled(const ScheduledSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        blocks_(cut_into_blocks(parts_.trainer->table(), parts_.trainer->segments(), settings.block)),
        priorities_(blocks_.size(), never),
        drawn_(blocks_.size()),
        worker_(parts_.rule->make_worker(parts_.view())),
        values_(parts_.team->group().allocate_span<float>(settings.blocks * settings.block)) {
    for (const Block& b : blocks_) shared_.push_back(parts_.rule->make_shared(parts_.place(b.range)));
  }

  double exchange(const StepInfo& info) override {
    const std::vector<std::size_t> chosen = schedule(info.clock);
    update(chosen, info.share);
    aggregate(chosen, info.lr);
    return 0;
  }

  void drain() override {}

  void read_model(std::span<float> out) override {
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      std::ranges::copy(shared_[b]->model(), out.begin() + static_cast<std::ptrdiff_t>(blocks_[b].range.begin));
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all{as_state("priorities", priorities_), as_state("drawn", drawn_)};
    add_states(all, "worker ", worker_->state());
    for (std::size_t b = 0; b < shared_.size(); ++b) add_states(all, fmt::format("block {} ", b), shared_[b]->state());
    return all;
  }

  // How unequally blocks were chosen: the most often drawn one, and the least.
  std::vector<Figure> figures() override {
    const auto [least, most] = std::ranges::minmax(drawn_);
    return {{"blocks", static_cast<double>(blocks_.size())}, {"least_drawn", least}, {"most_drawn", most}};
  }

 private:
  static constexpr double never = -1;  // not chosen yet

  // The same on all workers: the stream and the priorities are.
  std::vector<std::size_t> schedule(std::int64_t clock) {
    const Stream random({parts_.seed, static_cast<std::uint32_t>(clock), 0, stream_layer("blocks")});
    double known = 0, most = 0, count = 0;
    for (const double p : priorities_)
      if (p != never) known += p, most = std::max(most, p), ++count;
    const double least = count > 0 && known > 0 ? settings_.floor * known / count : 1;
    std::vector<double> weights(blocks_.size());
    for (std::size_t b = 0; b < weights.size(); ++b)
      weights[b] = priorities_[b] == never ? 1e3 * (most + least) : priorities_[b] + least;
    std::vector<std::size_t> chosen;
    for (std::uint64_t draw = 0; chosen.size() < settings_.blocks; ++draw) {
      const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
      if (all <= 0) break;  // the rest depends on what was chosen
      double at = static_cast<double>(random.uniform(draw)) * all;
      std::size_t b = 0;
      while (b + 1 < weights.size() && (weights[b] <= 0 || at >= weights[b])) at -= weights[b++];
      while (weights[b] <= 0) --b;  // rounding, at the end
      chosen.push_back(b);
      weights[b] = 0;
      if (settings_.dependencies)
        for (std::size_t other = 0; other < blocks_.size(); ++other)
          if (std::abs(blocks_[other].layer - blocks_[b].layer) == 1) weights[other] = 0;
    }
    std::ranges::sort(chosen);
    return chosen;
  }

  void update(const std::vector<std::size_t>& chosen, double share) {
    std::ranges::fill(values_, 0.0f);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Range r = blocks_[chosen[i]].range;
      worker_->contribute(r, share, values_.subspan(i * settings_.block, r.count()));
    }
  }

  void aggregate(const std::vector<std::size_t>& chosen, double lr) {
    Group& group = parts_.team->group();
    const PartialSum mine{parts_.rank(), parts_.rank() + 1, values_.data()};
    reduce_scatter_shards(
        group, {.shards = parts_.workers(), .partials = {&mine, 1}, .end = values_.size(), .out = values_.data()});
    all_gather_owned(group, values_.data(), 0, values_.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Range r = blocks_[chosen[i]].range;
      SharedSide& shared = *shared_[chosen[i]];
      before_.assign(shared.answer().begin(), shared.answer().end());
      shared.conclude(values_.subspan(i * settings_.block, r.count()), lr);
      worker_->apply(r, shared.answer());
      double change = 0;
      for (std::size_t k = 0; k < before_.size(); ++k) change += std::abs(double{shared.answer()[k]} - before_[k]);
      priorities_[chosen[i]] = change / static_cast<double>(before_.size());
      ++drawn_[chosen[i]];
    }
  }

  const ScheduledSettings settings_;
  ExchangeParts parts_;
  std::vector<Block> blocks_;
  std::vector<double> priorities_;  // the mean change of a number when the block was last chosen
  std::vector<double> drawn_;       // how often
  std::unique_ptr<WorkerSide> worker_;
  std::vector<std::unique_ptr<SharedSide>> shared_;  // by block
  std::span<float> values_;                          // of the chosen blocks, in shared memory where there is some
  std::vector<float> before_;
};

class ScheduledKind : public ExchangeKind {
 public:
  explicit ScheduledKind(const ScheduledSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override { return {.in_lockstep = true, .sums = true, .plain_numbers = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    const RuleTraits rule = c.rule->traits();
    refuse(
        problems, rule.local_step || !rule.sums || rule.model != RuleTraits::Model::shared,
        fmt::format("exchange scheduled leaves blocks as they are that were not chosen, but rule {} has workers make "
                    "steps of their own: take rule grad_push",
                    c.rule_name));
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Scheduled>(settings_, std::move(parts));
  }
  std::string messages_text() const override { return "2 n (n-1)"; }
  std::string traffic_text() const override {
    return "2 (n-1) 4 blocks block: the gradients of the chosen blocks to the owners of their pieces, the sums to all";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    Traffic sum;
    for (int i = 0; i < c.workers; ++i) {
      const auto sent = shard_sum_traffic(i, c.workers, c.workers, settings_.blocks * settings_.block);
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }

 private:
  const ScheduledSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_scheduled(OptionReader& options) {
  ScheduledSettings s;
  s.blocks = static_cast<std::size_t>(options.integer("blocks", 8, 1, 1'000'000));
  s.block = static_cast<std::size_t>(options.integer("block", 4096, 1, 100'000'000));
  s.floor = options.number("floor", 0.1, 0, 1e6);
  s.dependencies = options.flag("dependencies", true);
  return std::make_unique<ScheduledKind>(s);
}

}  // namespace

ExchangePart scheduled() {
  return {{"scheduled",
           "blocks of the model, chosen by their recent change: only these are summed and updated",
           {{"blocks", "8", "that are updated in a step"},
            {"block", "4096", "numbers of a block at most"},
            {"floor", "0.1", "of the mean change: what every block's weight in the draw has at least"},
            {"dependencies", "true", "blocks of neighbouring layers are not updated in the same step"}}},
          make_scheduled};
}

}  // namespace echelon::exchanges
