#include "collective/async_group.h"

#include <limits>

namespace echelon {

namespace {

constexpr double forever = std::numeric_limits<double>::infinity();

}  // namespace

bool Pending::done() const { return !async_group_ || async_group_->done_->count() > number_; }

bool Pending::wait(double deadline) const {
  if (!async_group_) return true;
  if (!async_group_->done_->wait(number_ + 1, deadline)) return false;
  if (number_ >= async_group_->failed_from_.load(std::memory_order_acquire))
    std::rethrow_exception(async_group_->failure_);
  return true;
}

AsyncGroup::AsyncGroup(Group& group)
    : group_(group.async_group()), ordered_(group.world().make_event()), done_(group.world().make_event()) {
  task_ = group.world().spawn("collectives", [this] { work(); });
}

AsyncGroup::~AsyncGroup() {
  if (std::uncaught_exceptions() > 0 && done_->count() < handed_)
    group_.world().abort("it stopped while an exchange was under way");
  // An order without a call is the end. If there is no room for it, the oldest order has to go first: every operation
  // ends, by its wait_policy if by nothing else.
  try {
    if (handed_ >= capacity) done_->wait(handed_ + 1 - capacity, forever);
  } catch (...) {  // a simulated rank that has crashed: its tasks end by themselves
  }
  orders_[handed_ % capacity].call = nullptr;
  ordered_->notify();
}

AsyncGroup::Order& AsyncGroup::next_order() {
  if (handed_ >= capacity) done_->wait(handed_ + 1 - capacity, forever);
  return orders_[handed_ % capacity];
}

Pending AsyncGroup::submit() {
  ordered_->notify();
  return Pending(this, handed_++);
}

void AsyncGroup::work() {
  for (std::uint64_t number = 0;; ++number) {
    ordered_->wait(number + 1, forever);
    const Order& order = orders_[number % capacity];
    if (!order.call) return;
    if (number < failed_from_.load(std::memory_order_relaxed)) {
      try {
        order.call(order.memory.data(), group_);
      } catch (...) {
        failure_ = std::current_exception();
        failed_from_.store(number, std::memory_order_release);
      }
    }
    done_->notify();
  }
}

}  // namespace echelon
