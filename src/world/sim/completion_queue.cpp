// Waiting for whichever of many messages comes first.

#include <algorithm>

#include "world/sim/transport.h"

namespace echelon::sim {

void SimCompletionQueue::watch(const Work& work, std::size_t number) {
  auto* const operation = static_cast<SimOperation*>(work.operation());
  if (!operation || operation->finished()) return happened(number);
  operation->watcher_ = this;
  operation->watched_as_ = number;
}

void SimCompletionQueue::happened(std::size_t number) {
  finished_.push_back(number);
  if (waiting_) transport_.scheduler_.wake(*waiting_);
}

bool SimCompletionQueue::next(std::size_t& number, double deadline) {
  Scheduler& scheduler = transport_.scheduler_;
  const Scheduler::Describe describe = [] { return std::string("a message from any rank"); };
  bool asked = false;
  while (finished_.empty()) {
    transport_.ranks_.check_alive(owner_);
    transport_.ranks_.check_whole(owner_, describe);
    if (scheduler.now() >= deadline && asked) return false;
    asked = true;
    waiting_ = scheduler.current();
    struct Leave {
      Strand*& waiting;
      ~Leave() { waiting = nullptr; }
    } leave{waiting_};
    scheduler.block(std::max(deadline, scheduler.now() + 1e-6), describe);
  }
  transport_.ranks_.check_alive(owner_);
  number = finished_.front();
  finished_.pop_front();
  return true;
}

}  // namespace echelon::sim
