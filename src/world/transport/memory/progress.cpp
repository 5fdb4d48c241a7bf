// How an Endpoint makes progress. Everything here runs under the endpoint's lock unless it says otherwise.

#include <algorithm>
#include <cstring>

#include "world/transport/memory/endpoint.h"

namespace echelon {

void Endpoint::progress() {
  std::unique_lock lock(lock_);
  changes_seen_.store(mine_.changes.load(std::memory_order_acquire), std::memory_order_relaxed);
  for (int r = 0; r < segment_.ranks(); ++r) drain(r);
  read_receipts();
  for (int r = 0; r < segment_.ranks(); ++r) flush(r);
  deliver_ready(lock);
  // Other tasks of this rank may sleep until one of these is done.
  if (std::exchange(finished_any_, false)) mine_.wake_up.wake();
}

// Out

bool Endpoint::visible(const MemoryOperation& m) const {
  return segment_.reach() == Segment::Reach::process || segment_.contains({m.from, m.bytes});
}

// Puts a message, or its announcement, into the ring. False if there is no room.
bool Endpoint::put(MemoryOperation& m) {
  Peer& p = peer(m.peer);
  const bool small = m.bytes <= small_bytes && p.out.may_send_small();
  if (!small && idle_receipts_.empty()) return false;
  Record* record = p.out.reserve(small ? m.bytes : 0);
  if (!record) return false;
  record->channel = m.channel;
  record->label = m.label;
  record->bytes = m.bytes;
  if (small) {
    record->kind = Record::small;
    if (m.bytes != 0) std::memcpy(payload_of(record), m.from, m.bytes);
    p.out.small_was_sent();
    finish(m);
  } else {
    m.receipt = idle_receipts_.back();
    idle_receipts_.pop_back();
    mine_.receipts[m.receipt].state.store(Receipt::waiting, std::memory_order_relaxed);
    record->token = m.receipt;
    record->kind = visible(m) ? Record::in_place : Record::by_pieces;
    if (record->kind == Record::in_place)
      record->where = segment_.reach() == Segment::Reach::process ? reinterpret_cast<std::uintptr_t>(m.from)
                                                                  : segment_.offset_of(m.from);
    m.state = MemoryOperation::State::offered;
    offered_.push_back(m);
  }
  p.out.publish();
  segment_.rank(m.peer).wake_up.wake();
  return true;
}

bool Endpoint::put_piece(MemoryOperation& m) {
  const std::size_t bytes = std::min(m.bytes - m.moved, largest_record - sizeof(Record));
  Record* record = peer(m.peer).out.reserve(bytes);
  if (!record) return false;
  record->kind = Record::piece;
  record->token = m.came.token;
  record->bytes = bytes;
  record->where = m.moved;
  std::memcpy(payload_of(record), m.from + m.moved, bytes);
  m.moved += bytes;
  peer(m.peer).out.publish();
  segment_.rank(m.peer).wake_up.wake();
  return true;
}

void Endpoint::flush(int to) {
  Peer& p = peer(to);
  while (MemoryOperation* m = p.queue.front()) {
    p.queue.remove(*m);
    if (!put(*m)) {
      m->state = MemoryOperation::State::queued;
      p.queue.push_front(*m);
      break;
    }
  }
  // In turn, so that a long message does not keep the others waiting.
  while (MemoryOperation* m = p.sending.pop_front()) {
    if (!put_piece(*m)) {
      p.sending.push_front(*m);
      break;
    }
    if (m->moved == m->bytes)
      finish(*m);
    else
      p.sending.push_back(*m);
  }
}

void Endpoint::read_receipts() {
  for (MemoryOperation *m = offered_.front(), *next = nullptr; m; m = next) {
    next = m->next;
    Receipt& receipt = mine_.receipts[m->receipt];
    const std::uint32_t state = receipt.state.load(std::memory_order_acquire);
    if (state != Receipt::taken && state != Receipt::send_pieces) continue;
    offered_.remove(*m);
    if (state == Receipt::send_pieces) {
      m->came.token = receipt.token;
      m->state = MemoryOperation::State::sending;
      peer(m->peer).sending.push_back(*m);
    } else {
      finish(*m);
    }
    idle_receipts_.push_back(m->receipt);
  }
}

// In

void Endpoint::drain(int from) {
  Peer& p = peer(from);
  while (const Record* record = p.in.front()) {
    if (record->kind == Record::piece) {
      take_piece(*record);
    } else {
      Channels::Queue& queue = p.channels[record->channel];
      if (MemoryOperation* m = channels_.arrive(queue))
        match(*m, *record, payload_of(record));
      else
        keep(queue, *record, payload_of(record));
    }
    if (p.in.pop()) tell(from);
  }
  if (p.in.publish()) tell(from);
}

void Endpoint::keep(Channels::Queue& queue, const Record& record, const std::byte* payload) {
  Arrival& arrival = channels_.keep(queue);
  arrival.record = record;
  if (record.kind != Record::small) return;
  arrival.bytes.reserve(small_bytes);
  arrival.bytes.assign(payload, payload + record.bytes);
}

// The message of that record belongs to the receive `m`.
void Endpoint::match(MemoryOperation& m, const Record& record, const std::byte* payload) {
  m.came = record;
  m.mismatched = record.label != m.label || record.bytes != m.bytes;
  switch (record.kind) {
    case Record::small:
      if (!m.mismatched) hand_over(m, 0, {payload, m.bytes});
      peer(m.peer).in.small_was_taken();
      finish(m);
      return;
    case Record::in_place:
      if (m.mismatched) break;
      m.state = MemoryOperation::State::ready;
      ready_.push_back(m);
      ready_count_.fetch_add(1);
      return;
    default:
      if (m.mismatched) break;
      m.state = MemoryOperation::State::filling;
      write_receipt(m.peer, record.token, Receipt::send_pieces, m.token);
      return;
  }
  write_receipt(m.peer, record.token, Receipt::taken, 0);  // nobody will read it
  finish(m);
}

void Endpoint::take_piece(const Record& record) {
  MemoryOperation& m = operations_[record.token];
  if (m.state != MemoryOperation::State::filling) return;  // abandoned
  hand_over(m, m.moved, {payload_of(&record), record.bytes});
  m.moved += record.bytes;
  if (m.moved == m.bytes) finish(m);
}

// Reads messages in the senders' memory, without the lock: other tasks may go on meanwhile.
void Endpoint::deliver_ready(std::unique_lock<std::mutex>& lock) {
  while (MemoryOperation* m = ready_.pop_front()) {
    ready_count_.fetch_sub(1);
    m->state = MemoryOperation::State::delivering;
    lock.unlock();
    Receipt& receipt = segment_.rank(m->peer).receipts[m->came.token];
    std::uint32_t state = Receipt::waiting;
    const bool there = receipt.state.compare_exchange_strong(state, Receipt::reading, std::memory_order_acq_rel);
    if (there) {
      const auto* bytes = segment_.reach() == Segment::Reach::process
                              ? reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(m->came.where))
                              : segment_.at(m->came.where);
      hand_over(*m, 0, {bytes, m->bytes});
      write_receipt(m->peer, m->came.token, Receipt::taken, 0);
    }
    lock.lock();
    if (there)
      finish(*m);
    else
      m->state = MemoryOperation::State::abandoned;  // the sender has withdrawn it: the job is about to fail
  }
}

void Endpoint::hand_over(MemoryOperation& m, std::size_t offset, std::span<const std::byte> piece) {
  if (m.sink.take)
    m.sink.take(m.sink.self, offset, piece);
  else if (!piece.empty())
    std::memcpy(m.into + offset, piece.data(), piece.size());
}

void Endpoint::finish(MemoryOperation& m) {
  m.state = MemoryOperation::State::finished;
  m.done.store(true, std::memory_order_seq_cst);
  finished_any_ = true;
}

void Endpoint::write_receipt(int sender, std::uint32_t receipt, Receipt::State state, std::uint32_t token) {
  Receipt& r = segment_.rank(sender).receipts[receipt];
  r.token = token;
  r.state.store(state, std::memory_order_release);
  tell(sender);
}

void Endpoint::tell(int rank) {
  RankBlock& other = segment_.rank(rank);
  other.changes.fetch_add(1, std::memory_order_seq_cst);
  other.wake_up.wake();
}

}  // namespace echelon
