// Bounded delay (Li et al. 2014, Parameter Server): every step reads afresh, as soon as all workers' steps that are
// `staleness` older have been merged.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Delay : public Bounded {
 public:
  using Bounded::Bounded;
  SyncTraits traits() const override { return {.bounded = true, .per_worker = true}; }
};

}  // namespace

SyncPart delay() {
  return {
      {"delay", "every step reads afresh, when all steps `staleness` before it are finished", {staleness_setting()}},
      [](OptionReader& options) -> std::unique_ptr<const Sync> {
        return std::make_unique<Delay>(read_staleness(options));
      }};
}

}  // namespace echelon::syncs
