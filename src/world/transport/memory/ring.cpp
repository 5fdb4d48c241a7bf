#include "world/transport/memory/ring.h"

#include <new>

#include "base/error.h"

namespace echelon {

namespace {

constexpr std::size_t line = 64;
constexpr std::uint64_t small_in_flight = 1024;  // that a receiver may have to keep for later

std::size_t record_size(std::size_t bytes) { return (sizeof(Record) + bytes + line - 1) / line * line; }

}  // namespace

Record* RingWriter::reserve(std::size_t bytes) {
  const std::size_t size = record_size(bytes);
  invariant(size <= largest_record, "a record fits into its ring");
  const std::size_t at = tail_ % RingMemory::capacity;
  const std::size_t gap = RingMemory::capacity - at < size ? RingMemory::capacity - at : 0;  // a record is in one piece
  const auto fits = [&] { return tail_ + gap + size - head_seen_ <= RingMemory::capacity; };
  if (!fits()) {
    head_seen_ = memory_->head.load(std::memory_order_acquire);
    if (!fits()) {
      memory_->starved.store(1, std::memory_order_seq_cst);
      head_seen_ = memory_->head.load(std::memory_order_seq_cst);
      if (!fits()) return nullptr;
    }
  }
  if (gap != 0) {
    new (memory_->data + at) Record{static_cast<std::uint32_t>(gap), Record::skip, 0, 0, {}, 0, 0};
    tail_ += gap;
  }
  auto* record = new (memory_->data + tail_ % RingMemory::capacity) Record{};
  record->size = static_cast<std::uint32_t>(size);
  tail_ += size;
  return record;
}

void RingWriter::publish() { memory_->tail.store(tail_, std::memory_order_seq_cst); }

bool RingWriter::may_send_small() {
  if (small_sent_ - small_taken_seen_ >= small_in_flight) {
    small_taken_seen_ = memory_->small_taken.load(std::memory_order_acquire);
    if (small_sent_ - small_taken_seen_ >= small_in_flight) return false;
  }
  return true;
}

const Record* RingReader::front() {
  const std::uint64_t tail = memory_->tail.load(std::memory_order_acquire);
  std::uint64_t head = head_.load(std::memory_order_relaxed);
  if (tail == head) return nullptr;
  auto* record = std::launder(reinterpret_cast<Record*>(memory_->data + head % RingMemory::capacity));
  if (record->kind == Record::skip) {
    head_.store(head += record->size, std::memory_order_relaxed);
    record = std::launder(reinterpret_cast<Record*>(memory_->data + head % RingMemory::capacity));
  }
  return record;
}

bool RingReader::pop() {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const auto* record = std::launder(reinterpret_cast<const Record*>(memory_->data + head % RingMemory::capacity));
  head_.store(head + record->size, std::memory_order_relaxed);
  return head + record->size - published_ >= RingMemory::capacity / 8 && publish();
}

bool RingReader::publish() {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  if (head == published_) return false;
  published_ = head;
  memory_->head.store(head, std::memory_order_seq_cst);
  return memory_->starved.load(std::memory_order_seq_cst) != 0 &&
         memory_->starved.exchange(0, std::memory_order_seq_cst) != 0;
}

}  // namespace echelon
