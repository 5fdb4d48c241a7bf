// Bulk synchronous parallel (Valiant 1990): every round has every worker, and each waits for its answer.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Bsp : public InRounds {
 public:
  SyncTraits traits() const override { return {.in_rounds = true, .lockstep = true}; }
  std::optional<std::int64_t> staleness() const override { return 0; }
};

}  // namespace

SyncPart bsp() {
  return {{"bsp", "all workers wait for each other in every step", {}},
          [](OptionReader&) -> std::unique_ptr<const Sync> { return std::make_unique<Bsp>(); }};
}

}  // namespace echelon::syncs
