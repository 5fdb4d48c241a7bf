// Stale synchronous parallel (Ho et al. 2013): a worker leads the slowest by at most `staleness` steps. It keeps its
// copy of the parameters as long as it may, and asks for fresh ones only when the next step must have seen more.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Ssp : public Bounded {
 public:
  using Bounded::Bounded;
  SyncTraits traits() const override {
    return {.bounded = true,
            .per_worker = true,
            .answers_every_push = false,
            .asks_when_stale = true,
            .varies_traffic = true};
  }
  bool asks(const WorkerClock& worker) const override { return worker.seen < must_have_seen(worker.clock + 1); }
};

}  // namespace

SyncPart ssp() {
  return {{"ssp", "no worker is further ahead of the slowest", {staleness_setting()}},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            return std::make_unique<Ssp>(read_staleness(options));
          }};
}

}  // namespace echelon::syncs
