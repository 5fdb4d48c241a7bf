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

std::vector<std::string> sync_names() {
  std::vector<std::string> names;
  for (const Named& k : kinds) names.emplace_back(k.name);
  return names;
}

const char* to_text(Sync::Kind kind) { return std::ranges::find(kinds, kind, &Named::kind)->name; }

Sync read_sync(OptionReader& options) {
  Sync sync;
  const std::string name = options.choice("name", "bsp", sync_names());
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

Period read_period(OptionReader& options) {
  Period p;
  p.tau = options.integer("tau", 1, 1, 1'000'000'000);
  p.probability = options.number("probability", 1, 0, 1);
  p.at_end = options.flag("at_end", false);
  if (p.probability < 1 && p.tau > 1) options.problem("probability", "and tau exclude each other: keep one of them");
  return p;
}

int needed(const Sync& sync, int workers) {
  return sync.kind == Sync::Kind::quorum ? std::max(1, workers - sync.backups) : workers;
}

std::int64_t must_have_seen(const Sync& sync, std::int64_t clock) {
  if (sync.kind == Sync::Kind::bsp) return clock;
  return sync.bounded() ? clock - sync.staleness : 0;
}

}  // namespace echelon
