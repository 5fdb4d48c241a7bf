// The table of all syncs, and what they have in common.

#include "parallel/syncs/syncs.h"

namespace echelon {

const std::vector<SyncPart>& sync_parts() {
  static const std::vector<SyncPart> rows{syncs::bsp(),         syncs::quorum(), syncs::a_bsp(), syncs::ssp(),
                                          syncs::essp(),        syncs::delay(),  syncs::value(), syncs::soft(),
                                          syncs::approximate(), syncs::async()};
  return rows;
}

std::unique_ptr<const Sync> read_sync(OptionReader& options) {
  auto sync = chosen_row(sync_parts(), options, "bsp").make(options);
  options.done();
  return sync;
}

void Sync::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  const SyncTraits t = traits();
  const bool by_clocks = t.lockstep || t.never_waits || t.bounded;
  refuse(problems, facts.split && (!by_clocks || t.leaves_out || t.hands_in_early),
         fmt::format("sync {} decides for every server by itself whom it waits for, and the stages of a split replica "
                     "would not hear the same: take sync bsp, ssp or async, or leave out --plan",
                     c.sync_name));
  refuse(
      problems, traits().per_worker && c.exchange->traits().sums_on_the_way,
      fmt::format("sync {} looks at every worker's clock, but exchange {} adds contributions up on the way: take sync "
                  "bsp or async, or leave out exchange.fanout and two_level",
                  c.sync_name, c.exchange_name));
}

std::vector<Figure> Sync::figures(const ServerCounts& counts) const {
  return {{"updates", counts.updates / counts.keys}, {"seconds_waited", counts.waited}};
}

}  // namespace echelon
