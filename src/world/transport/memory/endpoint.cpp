#include "world/transport/memory/endpoint.h"

#include <sched.h>

#include <algorithm>
#include <numeric>

namespace echelon {

namespace {

std::vector<Rank> or_numbers(std::vector<Rank> names, int ranks) {
  if (names.empty()) {
    names.resize(static_cast<std::size_t>(ranks));
    std::iota(names.begin(), names.end(), 0);
  }
  return names;
}

}  // namespace

bool MemoryOperation::wait(double deadline) { return endpoint.wait(*this, deadline); }
void MemoryOperation::release() { endpoint.release(*this); }

Endpoint::Endpoint(Segment& segment, int rank, std::vector<Rank> names)
    : segment_(segment),
      rank_(rank),
      names_(or_numbers(std::move(names), segment.ranks())),
      mine_(segment.rank(rank)),
      spin_policy_(spin_policy_for(segment.ranks())),
      idle_receipts_(RankBlock::receipt_count) {
  // In a collective a peer is at most one operation ahead, of which it sends a few small messages: with room for these
  // from the start, it does not depend on who is late whether a round allocates.
  constexpr int messages_ahead = 8, busy_peers = 8;
  channels_.reserve(static_cast<std::size_t>(messages_ahead * std::min(segment.ranks(), busy_peers)),
                    [](Arrival& arrival) { arrival.bytes.reserve(small_bytes); });
  OperationList made;
  while (operations_.size() < 64)  // as many as most programs ever have at once
    made.push_back(operations_.take(*this, static_cast<std::uint32_t>(operations_.size())));
  while (MemoryOperation* const operation = made.pop_front()) operations_.give_back(*operation);
  for (int r = 0; r < segment.ranks(); ++r) peers_.emplace_back(segment.ring(rank, r), segment.ring(r, rank));
  std::iota(idle_receipts_.rbegin(), idle_receipts_.rend(), 0u);
}

MemoryOperation& Endpoint::get(bool is_send, int peer, Channel channel, Label label, std::size_t bytes) {
  invariant(peer >= 0 && peer < segment_.ranks(), "the other side of a message is a rank of this world");
  MemoryOperation& m = operations_.take(*this, static_cast<std::uint32_t>(operations_.size()));
  m.is_send = is_send;
  m.peer = peer;
  m.channel = channel;
  m.label = label;
  m.bytes = bytes;
  m.moved = 0;
  m.mismatched = false;
  m.done.store(false, std::memory_order_relaxed);
  return m;
}

Work Endpoint::send(int to, Channel channel, Label label, std::span<const std::byte> bytes) {
  const std::lock_guard lock(lock_);
  MemoryOperation& m = get(true, to, channel, label, bytes.size());
  m.from = bytes.data();
  m.state = MemoryOperation::State::queued;
  Peer& p = peer(to);
  if (!p.queue.empty() || !put(m)) p.queue.push_back(m);
  return Work(&m);
}

Work Endpoint::receive(int from, Channel channel, Label label, std::size_t bytes, std::byte* into, Sink sink) {
  const std::lock_guard lock(lock_);
  MemoryOperation& m = get(false, from, channel, label, bytes);
  m.into = into;
  m.sink = sink;
  m.state = MemoryOperation::State::pending;
  if (auto* const message = channels_.receive(peer(from).channels[channel], m)) {
    match(m, message->record, message->bytes.data());
    channels_.done_with(*message);
    if (ready_count_.load(std::memory_order_relaxed) != 0) mine_.wake_up.wake();  // a task that sleeps could read it
  }
  return Work(&m);
}

bool Endpoint::something_came() const {
  if (mine_.changes.load(std::memory_order_seq_cst) != changes_seen_.load(std::memory_order_relaxed)) return true;
  if (ready_count_.load(std::memory_order_seq_cst) != 0) return true;
  for (const Peer& p : peers_)
    if (!p.in.empty()) return true;
  return false;
}

template <typename Describe, typename BeforeSleep>
bool Endpoint::wait_loop(const std::atomic<bool>& done, double deadline, Describe&& describe,
                         BeforeSleep&& before_sleep) {
  SpinWait timeout(spin_policy_, deadline);
  for (;;) {
    if (segment_.failure().known()) segment_.failure().throw_peer_lost(describe());
    if (done.load(std::memory_order_acquire)) return true;
    if (something_came()) {
      progress();
      if (done.load(std::memory_order_acquire)) continue;
      if (timeout.start_again() == SpinWait::Advice::too_late) return false;
      continue;
    }
    switch (timeout.pause()) {
      case SpinWait::Advice::look_again: break;
      case SpinWait::Advice::too_late: return false;
      case SpinWait::Advice::sleep:
        before_sleep();
        mine_.wake_up.sleep(timeout.seconds_to_sleep(), [&] {
          return done.load(std::memory_order_seq_cst) || segment_.failure().known() || something_came();
        });
    }
  }
}

bool Endpoint::wait_until(const std::atomic<bool>& done, double deadline,
                          const std::function<std::string()>& operation) {
  return wait_loop(done, deadline, operation, [] {});
}

bool Endpoint::wait(MemoryOperation& m, double deadline) {
  try {
    if (!wait_loop(
            m.done, deadline, [&] { return describe(m); }, [&] { look_for_ended_peer(m); }))
      return false;
    if (m.mismatched) throw_mismatch(m);
    return true;
  } catch (...) {
    std::unique_lock lock(lock_);
    let_go(m, lock);
    throw;
  }
}

// A rank whose program has returned will neither send nor receive any more.
void Endpoint::look_for_ended_peer(MemoryOperation& m) {
  if (segment_.rank(m.peer).ended.load(std::memory_order_acquire) == 0) return;
  progress();  // what it sent before its end
  const std::lock_guard lock(lock_);
  if (m.state == MemoryOperation::State::pending || m.state == MemoryOperation::State::queued ||
      m.state == MemoryOperation::State::offered)
    throw PeerLost(name(m.peer), "its program has ended", describe(m));
}

void Endpoint::release(MemoryOperation& m) {
  std::unique_lock lock(lock_);
  if (m.state != MemoryOperation::State::finished && m.state != MemoryOperation::State::abandoned) let_go(m, lock);
  if (m.state != MemoryOperation::State::finished) return;
  m.state = MemoryOperation::State::idle;
  operations_.give_back(m);
}

// Ends the use of the memory that an unfinished operation names. Afterwards it is finished or abandoned.
void Endpoint::let_go(MemoryOperation& m, std::unique_lock<std::mutex>& lock) {
  using State = MemoryOperation::State;
  const auto wait_while = [&](auto&& condition) {  // another task, or another thread of this process, is copying
    while (condition()) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
  };
  switch (m.state) {
    case State::queued: peer(m.peer).queue.remove(m); break;
    case State::sending: peer(m.peer).sending.remove(m); break;
    case State::pending: peer(m.peer).channels[m.channel].pending.remove(m); break;
    case State::ready:
      ready_.remove(m);
      ready_count_.fetch_sub(1);
      break;
    case State::delivering: wait_while([&] { return m.state == State::delivering; }); break;
    case State::filling: m.state = State::abandoned; return;
    case State::offered: {
      offered_.remove(m);
      Receipt& receipt = mine_.receipts[m.receipt];
      std::uint32_t state = Receipt::waiting;
      receipt.state.compare_exchange_strong(state, Receipt::withdrawn, std::memory_order_acq_rel);
      // Other processes read the segment, which stays; threads read memory that may go away once we return.
      if (segment_.reach() == Segment::Reach::process)
        wait_while([&] { return receipt.state.load(std::memory_order_acquire) == Receipt::reading; });
      m.state = State::abandoned;
      return;
    }
    default: return;
  }
  m.state = State::finished;
}

std::string Endpoint::describe(const MemoryOperation& m) const {
  return fmt::format("{} ({} rank {})", to_string(m.label), m.is_send ? "sending to" : "receiving from", name(m.peer));
}

void Endpoint::throw_mismatch(const MemoryOperation& m) const {
  throw Mismatch(fmt::format("rank {} sent {}, {} bytes; rank {} expected {}, {} bytes (channel {})", name(m.peer),
                             to_string(m.came.label), m.came.bytes, name(rank_), to_string(m.label), m.bytes,
                             m.channel));
}

}  // namespace echelon
