// Eager SSP (Dai et al. 2015): as ssp, but a worker never asks. Whenever the slowest worker has made a step, servers
// send fresh parameters to all workers.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Essp : public Bounded {
 public:
  using Bounded::Bounded;
  SyncTraits traits() const override {
    return {.bounded = true, .per_worker = true, .sends_unasked = true, .answers_every_push = false};
  }
  bool asks(const WorkerClock&) const override { return false; }
};

}  // namespace

SyncPart essp() {
  return {{"essp", "as ssp, and fresh parameters are sent before they are asked for", {staleness_setting()}},
          [](OptionReader& options) -> std::unique_ptr<const Sync> {
            return std::make_unique<Essp>(read_staleness(options));
          }};
}

}  // namespace echelon::syncs
