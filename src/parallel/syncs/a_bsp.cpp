// Aggressive synchronisation (A-BSP, Wang et al. 2018): when the fastest worker has finished its part of a batch, the
// others hand in what they have computed by then.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class ABsp : public InRounds {
 public:
  SyncTraits traits() const override {
    return {.in_rounds = true, .per_worker = true, .leaves_out = true, .hands_in_early = true, .varies_traffic = true};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    InRounds::accepts(c, facts, problems);
    refuse(problems, c.exchange->traits().no_own_gradient,
           "exchange.factors are of all samples of a worker's part, but with sync a_bsp it may have computed only "
           "some of them: take sync quorum, or leave out exchange.factors");
  }
  std::vector<Figure> figures(const ServerCounts& counts) const override {
    std::vector<Figure> figures = InRounds::figures(counts);
    figures.emplace_back("part_done", counts.steps > 0 ? counts.done / counts.steps : 1);
    return figures;
  }
};

}  // namespace

SyncPart a_bsp() {
  return {{"a_bsp", "the fastest closes the step with what the others have done of it", {}},
          [](OptionReader&) -> std::unique_ptr<const Sync> { return std::make_unique<ABsp>(); }};
}

}  // namespace echelon::syncs
