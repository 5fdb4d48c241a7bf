// Backup workers (Chen et al. 2016): a round is complete with the contributions of all workers but `backups`; those
// that come later are dropped, and their workers go on with the newest round.

#include <algorithm>

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Quorum : public InRounds {
 public:
  explicit Quorum(int backups) : backups_(backups) {}
  SyncTraits traits() const override {
    return {.in_rounds = true, .per_worker = true, .leaves_out = true, .varies_traffic = true};
  }
  int needed(int workers) const override { return std::max(1, workers - backups_); }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    InRounds::accepts(c, facts, problems);
    const RuleTraits rule = c.rule->traits();
    refuse(problems, at_own_pace(c) && rule.quantity == RuleTraits::Quantity::gradient && rule.local_step,
           fmt::format("with sync quorum a worker can miss a round, and with rule {} its weights would then "
                       "differ for ever: take rule grad_push, which makes the step at the servers, where all "
                       "workers read the result",
                       c.rule_name));
    refuse(problems, facts.workers > 0 && backups_ >= facts.workers,
           fmt::format("sync quorum with {} backups needs more than {} workers: set sync.backups to at "
                       "most {}",
                       backups_, facts.workers, facts.workers - 1));
  }
  std::vector<Figure> figures(const ServerCounts& counts) const override {
    std::vector<Figure> figures = InRounds::figures(counts);
    figures.emplace_back("dropped", counts.dropped / counts.keys);
    return figures;
  }

 private:
  int backups_;
};

}  // namespace

SyncPart quorum() {
  return {{"quorum", "the step closes without the slowest", {{"backups", "1", "workers that are not waited for"}}},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            return std::make_unique<Quorum>(static_cast<int>(options.integer("backups", 1, 0, 100'000)));
          }};
}

}  // namespace echelon::syncs
