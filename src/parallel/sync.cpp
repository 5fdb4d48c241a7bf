#include "parallel/sync.h"

#include <algorithm>
#include <array>

namespace echelon {

namespace {

struct Named {
  const char* name;
  Sync::Kind kind;
};
constexpr std::array<Named, 10> kinds{{{"bsp", Sync::Kind::bsp},
                                       {"quorum", Sync::Kind::quorum},
                                       {"a_bsp", Sync::Kind::a_bsp},
                                       {"ssp", Sync::Kind::ssp},
                                       {"essp", Sync::Kind::essp},
                                       {"delay", Sync::Kind::delay},
                                       {"value", Sync::Kind::value},
                                       {"soft", Sync::Kind::soft},
                                       {"approximate", Sync::Kind::approximate},
                                       {"async", Sync::Kind::async}}};

}  // namespace

std::vector<PartInfo> sync_parts() {
  const Setting staleness{"staleness", "3", "clocks"};
  const Setting share{"epoch_share", "1",
                      "work own: an epoch ends when so much of it is done, without what slow ones have left"};
  const Setting work{"work", "\"common\"",
                     "common: who is ready takes the next batch; own: each has its part of every batch"};
  return {{"bsp", "everybody waits for everybody, every time", {}},
          {"quorum", "the step closes without the slowest", {{"backups", "1", "workers that are not waited for"}}},
          {"a_bsp", "the fastest closes the step with what the others have done of it", {}},
          {"ssp", "nobody leads the slowest by more", {staleness}},
          {"essp", "as ssp, and fresh parameters are sent before they are asked for", {staleness}},
          {"delay", "every step reads afresh, when all steps `staleness` before it are finished", {staleness}},
          {"value",
           "wait while the parameters are farther from what the slowest has read",
           {{"bound", "0.1", "of any parameter"}, work, share}},
          {"soft",
           "rounds that nobody waits for, unless the last answer is late",
           {{"staleness", "16", "steps after which it is"}}},
          {"approximate",
           "only changes above a relative threshold leave the site; it shrinks as 1 / sqrt(t)",
           {{"threshold", "0.01", "at the first step"},
            {"sites", "0", "groups of workers with servers of their own; 0: the hosts"},
            {"staleness", "8", "steps by which a site may be ahead of the slowest"},
            work,
            share}},
          {"async", "nobody waits", {work, share}}};
}

void Sync::accepts(const Composition&, const CompositionFacts&, Problems&) const {}

const char* to_text(Sync::Kind kind) { return std::ranges::find(kinds, kind, &Named::kind)->name; }

Sync read_sync(OptionReader& options) {
  Sync sync;
  const std::string name = options.choice("name", "bsp", names_of(sync_parts()));
  if (const auto found = std::ranges::find(kinds, name, [](const Named& k) { return std::string(k.name); });
      found != kinds.end())
    sync.kind = found->kind;
  if (sync.bounded()) sync.staleness = options.integer("staleness", sync.staleness, 0, 1'000'000);
  if (sync.kind == Sync::Kind::quorum) sync.backups = static_cast<int>(options.integer("backups", 1, 0, 100'000));
  if (sync.kind == Sync::Kind::value) sync.bound = options.number("bound", sync.bound, 0);
  if (sync.kind == Sync::Kind::soft) sync.staleness = options.integer("staleness", 16, 1, 1'000'000);
  if (sync.kind == Sync::Kind::approximate) {
    sync.threshold = options.number("threshold", sync.threshold, 0, 1);
    sync.sites = static_cast<int>(options.integer("sites", 0, 0, 100'000));
    sync.staleness = options.integer("staleness", 8, 1, 1'000'000);
  }
  if (!sync.in_rounds() && !sync.bounded()) {
    const std::string work = options.choice("work", "common", {"common", "own"});
    sync.common_work = work == "common";
    sync.epoch_share = options.number("epoch_share", 1, 0.01, 1);
    if (sync.common_work && sync.epoch_share < 1)
      options.problem("epoch_share",
                      "is for workers that have their own parts of an epoch, of which slow ones have some "
                      "left; from a common heap everybody takes until it is empty: set sync.work=own");
  }
  options.done();
  return sync;
}

int needed(const Sync& sync, int workers) {
  return sync.kind == Sync::Kind::quorum ? std::max(1, workers - sync.backups) : workers;
}

std::int64_t must_have_seen(const Sync& sync, std::int64_t clock) {
  if (sync.kind == Sync::Kind::bsp) return clock;
  return sync.bounded() ? clock - sync.staleness : 0;
}

}  // namespace echelon
