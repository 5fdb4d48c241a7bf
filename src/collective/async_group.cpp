#include "collective/async_group.h"

#include <limits>

namespace echelon {

namespace {

constexpr double no_deadline = std::numeric_limits<double>::infinity();

}  // namespace

bool Pending::done() const { return !group_ || group_->done_->count() > number_; }

bool Pending::wait(double deadline) const {
  if (!group_) return true;
  if (!group_->done_->wait(number_ + 1, deadline)) return false;
  if (number_ >= group_->failed_from_.load(std::memory_order_acquire)) std::rethrow_exception(group_->failure_);
  return true;
}

AsyncGroup::AsyncGroup(Group& group)
    : group_(group.dup()), ready_(group.world().make_event()), done_(group.world().make_event()) {
  task_ = group.world().spawn("collectives", [this] { work(); });
}

AsyncGroup::~AsyncGroup() {
  if (std::uncaught_exceptions() > 0 && done_->count() < submitted_)
    group_.world().abort("it stopped while an exchange was under way");
  // A submission without a function ends the task. If there is no room for it, the oldest operation has to end first:
  // every operation ends, by the limit of the wait policy if by nothing else.
  try {
    if (submitted_ >= capacity) done_->wait(submitted_ + 1 - capacity, no_deadline);
  } catch (...) {  // a simulated rank that has crashed: its tasks end by themselves
  }
  submissions_[submitted_ % capacity].run = nullptr;
  ready_->notify();
}

AsyncGroup::Submission& AsyncGroup::next_submission() {
  if (submitted_ >= capacity) done_->wait(submitted_ + 1 - capacity, no_deadline);
  return submissions_[submitted_ % capacity];
}

Pending AsyncGroup::submit() {
  ready_->notify();
  return Pending(this, submitted_++);
}

void AsyncGroup::work() {
  for (std::uint64_t number = 0;; ++number) {
    ready_->wait(number + 1, no_deadline);
    const Submission& next = submissions_[number % capacity];
    if (!next.run) return;
    if (number < failed_from_.load(std::memory_order_relaxed)) {
      try {
        next.run(next.memory.data(), group_);
      } catch (...) {
        failure_ = std::current_exception();
        failed_from_.store(number, std::memory_order_release);
      }
    }
    done_->notify();
  }
}

}  // namespace echelon
