#include "world/transport/tcp/transfer.h"

#include <algorithm>

#include "world/transport/memory/wake_up.h"

namespace echelon::tcp {

std::string describe(const Label& label, std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", to_string(label), bytes);
}

bool Transfer::wait(double deadline) {
  if (pool->endpoint_) {
    if (!pool->endpoint_->wait_until(over, deadline, [this] { return to_string(label); })) return false;
  } else {
    std::uint32_t now = pending;
    if (state.compare_exchange_strong(now, awaited, std::memory_order_acq_rel)) now = awaited;
    while (now == awaited) {
      const double left = deadline - pool->clock_.seconds();
      if (left <= 0) return false;
      futex_wait(state, awaited, std::min(left, 1e6));
      now = state.load(std::memory_order_acquire);
    }
  }
  switch (state.load(std::memory_order_acquire)) {
    case done: return true;
    case mismatched: throw Mismatch(problem);
    case ended: throw PeerLost(peer, "its program has ended", to_string(label));
    default: pool->failure_.throw_peer_lost(to_string(label));
  }
}

void Transfer::finish(State how) {
  if (Endpoint* const endpoint = pool->endpoint_) {
    state.store(how, std::memory_order_relaxed);
    over.store(true, std::memory_order_seq_cst);
    endpoint->wake();
  } else if (state.exchange(how, std::memory_order_acq_rel) == awaited) {
    futex_wake_all(state);
  }
}

bool Transfer::settled() const {
  return pool->endpoint_ ? over.load(std::memory_order_acquire) : state.load(std::memory_order_acquire) >= done;
}

void Transfer::release() {
  if (!settled()) carrier->abandon(*this);
  pool->give_back(*this);
}

TransferPool::TransferPool(const FirstFailure& failure, Clock& clock) : failure_(failure), clock_(clock) {
  for (int i = 0; i < 64; ++i) {  // as many as most programs ever have at once
    Transfer& t = all_.emplace_back();
    t.pool = this;
    give_back(t);
  }
}

Transfer& TransferPool::take() {
  const std::lock_guard lock(mutex_);
  Transfer* t = free_;
  if (t) {
    free_ = t->next;
  } else {
    t = &all_.emplace_back();
    t->pool = this;
  }
  t->state.store(Transfer::pending, std::memory_order_relaxed);
  t->over.store(false, std::memory_order_relaxed);
  t->next = nullptr;
  return *t;
}

void TransferPool::give_back(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  transfer.next = free_;
  free_ = &transfer;
}

bool TransferQueue::remove(Transfer& t) {
  Transfer* before = nullptr;
  for (Transfer* i = first_; i; before = i, i = i->next) {
    if (i != &t) continue;
    (before ? before->next : first_) = t.next;
    if (last_ == &t) last_ = before;
    return true;
  }
  return false;
}

}  // namespace echelon::tcp
