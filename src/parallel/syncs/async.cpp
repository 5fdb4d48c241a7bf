// Asynchronous: contributions are merged as they come and answered at once; no worker waits for another one.

#include "parallel/syncs/syncs.h"

namespace echelon::syncs {

namespace {

class Async : public SharingWork {
 public:
  using SharingWork::SharingWork;
  SyncTraits traits() const override { return {.never_waits = true}; }
};

}  // namespace

SyncPart async() {
  return {
      {"async", "no worker waits for another", with_work_settings({})},
      [](OptionReader& options) -> std::unique_ptr<const Sync> { return std::make_unique<Async>(read_work(options)); }};
}

}  // namespace echelon::syncs
