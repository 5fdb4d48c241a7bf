#include "world/transport/tcp/transfer.h"

#include <algorithm>

#include "world/os/wake_up.h"

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
  TransferQueue made;
  while (pool_.size() < 64) made.push_back(pool_.take());  // as many as most programs ever have at once
  while (Transfer* const transfer = made.pop_front()) pool_.give_back(*transfer);
}

Transfer& TransferPool::take(const Route& route) {
  const std::lock_guard lock(mutex_);
  Transfer& transfer = pool_.take();
  transfer.pool = this;
  transfer.state.store(Transfer::pending, std::memory_order_relaxed);
  transfer.over.store(false, std::memory_order_relaxed);
  transfer.carrier = &route.carrier;
  transfer.peer = route.peer;
  transfer.channel = route.channel;
  transfer.label = route.label;
  return transfer;
}

Transfer& TransferPool::take(const Route& route, std::span<const std::byte> from) {
  Transfer& transfer = take(route);
  transfer.sends = true;
  transfer.from = from.data();
  transfer.bytes = from.size();
  return transfer;
}

Transfer& TransferPool::take(const Route& route, std::byte* into, std::size_t bytes, Sink sink) {
  Transfer& transfer = take(route);
  transfer.sends = false;
  transfer.into = into;
  transfer.bytes = bytes;
  transfer.sink = sink;
  return transfer;
}

void TransferPool::give_back(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  pool_.give_back(transfer);
}

}  // namespace echelon::tcp
