// All workers write into one memory, without locks (Hogwild); or each group of workers into its own, with a token that
// goes round (Hogwild++). Only work and its results travel as messages. The mathematics is
// parallel/exchanges/racing_weights.h.

#include <algorithm>

#include "collective/collectives.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/racing_weights.h"
#include "world/os/numa.h"

namespace echelon::exchanges {

namespace {

struct SharedMemorySettings {
  int groups = 1;  // 0: one for each NUMA node
  RacingWeights::Add add = RacingWeights::Add::racing;
  std::int64_t token_every = 4;  // updates
};

class SharedMemoryExchange : public Exchange {
 public:
  SharedMemoryExchange(const SharedMemorySettings& settings, ExchangeParts parts)
      : parts_(std::move(parts)),
        nodes_(settings.groups == 0 ? numa_nodes() : std::vector<std::vector<int>>{}),
        groups_(std::min(settings.groups == 0 ? static_cast<int>(nodes_.size()) : settings.groups, parts_.workers())),
        group_(group_of(parts_.rank())),
        weights_(
            parts_.world->shared_memory()->get("racing weights", RacingWeights::memory_bytes(parts_.floats(), groups_)),
            parts_.floats(), groups_, settings.add, static_cast<std::uint64_t>(settings.token_every)),
        worker_(parts_.rule->make_worker(parts_.view())),
        values_(parts_.floats() * sizeof(float)) {
    if (nodes_.size() > 1)
      parts_.team->cores().run([&](int) { bind_this_thread(nodes_[static_cast<std::size_t>(group_)]); });
    const bool first = parts_.rank() == 0 || group_of(parts_.rank() - 1) != group_;
    if (first) weights_.start(group_, parts_.trainer->parameters());
    barrier(parts_.team->group(), "the first weights in shared memory");
  }

  // Reads as late as possible, while others write.
  void before_step(const StepInfo&) override {
    if (!wants_weights_) return;
    seen_ = weights_.updates(group_);
    weights_.read(group_, values_.as<float>());
    worker_->apply({0, parts_.floats()}, values_.as<float>());
    wants_weights_ = 0;
  }

  double exchange(const StepInfo& info) override {
    worker_->contribute({0, parts_.floats()}, info.share, values_.as<float>());
    staleness_ += weights_.add(group_, values_.as<float>()) - seen_;
    ++pushes_;
    wants_weights_ = 1;
    return 0;
  }

  void drain() override {
    Group& group = parts_.team->group();
    barrier(group, "the last racing update");
    if (parts_.rank() == 0) weights_.drain();
    barrier(group, "the token's last round");
  }

  void read_model(std::span<float> out) override {
    barrier(parts_.team->group(), "the weights in shared memory");  // rank 0 may just have loaded them
    weights_.read(0, out);
    barrier(parts_.team->group(), "every worker's reading of them");  // before one moves them on
  }

  std::vector<Figure> figures() override {
    struct Counts {
      double staleness, pushes;
    };
    double staleness = 0, updates = 0;
    for (const Counts& c :
         parts_.team->all_gather_struct(Counts{static_cast<double>(staleness_), static_cast<double>(pushes_)}))
      staleness += c.staleness, updates += c.pushes;
    return {{"updates", updates},
            {"mean_staleness", updates > 0 ? staleness / updates : 0},
            {"groups", static_cast<double>(groups_)}};
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    if (parts_.rank() == 0) all.push_back({"racing weights", weights_.memory()});
    all.push_back(as_state("wants weights", wants_weights_));
    all.push_back(as_state("seen", seen_));
    all.push_back(as_state("staleness", staleness_));
    all.push_back(as_state("pushes", pushes_));
    return all;
  }

 private:
  int group_of(Rank rank) const { return rank * groups_ / parts_.workers(); }

  ExchangeParts parts_;
  std::vector<std::vector<int>> nodes_;  // of the machine, if they are the groups: the cores of each
  int groups_, group_;
  RacingWeights weights_;
  std::unique_ptr<WorkerSide> worker_;
  Buffer values_;
  std::uint64_t wants_weights_ = 1;
  std::uint64_t seen_ = 0;       // updates of the group when its weights were read
  std::uint64_t staleness_ = 0;  // others' updates between reading and writing, summed up
  std::uint64_t pushes_ = 0;
};

class SharedMemoryKind : public ExchangeKind {
 public:
  explicit SharedMemoryKind(const SharedMemorySettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false, .shared_memory = true, .plain_numbers = true, .by_clock = true};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse(
        problems, !c.rule->traits().adds,
        fmt::format("exchange shared_memory adds to common weights where they lie, which rule {} does not: take rule "
                    "movement_add, or exchange server",
                    c.rule_name));
    refuse(problems, !c.sync->traits().never_waits,
           fmt::format("no worker waits where all write at once, so sync {} has no meaning there: take sync async",
                       c.sync_name));
    refuse(
        problems, facts.workers > 0 && !facts.shares_memory,
        "exchange shared_memory writes into memory that all workers see: run it with --world threads or processes and "
        "without --link, or take exchange server with sync async");
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<SharedMemoryExchange>(settings_, std::move(parts));
  }
  std::string messages_text() const override { return "none"; }
  std::string traffic_text() const override { return "nothing: workers write where all can read"; }
  Traffic traffic(const TrafficQuery&) const override { return {}; }

 private:
  SharedMemorySettings settings_;
};

std::unique_ptr<const ExchangeKind> make_shared_memory(OptionReader& options) {
  SharedMemorySettings s;
  s.groups = static_cast<int>(options.integer("groups", 1, 0, 100'000));
  if (options.choice("add", "racing", {"racing", "atomic"}) == "atomic") s.add = RacingWeights::Add::atomic;
  s.token_every = options.integer("token_every", s.token_every, 1, 1'000'000);
  return std::make_unique<SharedMemoryKind>(s);
}

}  // namespace

ExchangePart shared_memory() {
  return {{"shared_memory",
           "one memory, written without locks",
           {{"groups", "1", "of workers with a copy each, that pass a token; 0: one on each NUMA node, on its cores"},
            {"token_every", "4", "updates of a group before it passes the token"},
            {"add", "\"racing\"", "racing (updates may be lost), or atomic"}}},
          make_shared_memory};
}

}  // namespace echelon::exchanges
