#pragma once
// One message as the rank that sends or receives it keeps it, from a pool of its Endpoint. Only the Endpoint looks
// inside.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "world/transport/memory/ring.h"
#include "world/world.h"

namespace echelon {

class Endpoint;

struct MemoryOperation final : public Operation {
  // Where it stands. The Endpoint's lock guards everything but `done`.
  enum class State {
    idle,        // in the pool
    queued,      // sending: not yet in the ring
    offered,     // sending: in the ring; the receiver will write the receipt
    sending,     // sending: by pieces
    posted,      // receiving: nothing has come yet
    ready,       // receiving: it can be read where it lies
    delivering,  // receiving: some task is reading it now
    filling,     // receiving: by pieces
    finished,
    abandoned,  // nobody waits any more, but the other side may still refer to it: never used again
  };

  MemoryOperation(Endpoint& endpoint, std::uint32_t token) : endpoint(endpoint), token(token) {}
  bool wait(double deadline) override;
  bool finished() override { return done.load(std::memory_order_acquire); }
  void release() override;

  Endpoint& endpoint;
  const std::uint32_t token;  // its number in the pool
  State state = State::idle;
  std::atomic<bool> done{false};
  bool mismatched = false;
  bool is_send = false;
  Rank peer = 0;
  Channel channel = 0;
  Label label;
  std::size_t bytes = 0;
  std::size_t moved = 0;  // bytes sent or received in pieces
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  Sink sink;
  std::uint32_t receipt = 0;
  Record came{};  // receiving: what the sender says
  MemoryOperation *next = nullptr, *previous = nullptr;
};

// A list through the messages themselves: joining and leaving allocate nothing.
class OperationList {
 public:
  bool empty() const { return first_ == nullptr; }
  MemoryOperation* first() const { return first_; }
  void push_back(MemoryOperation& m) {
    m.next = nullptr;
    m.previous = last_;
    (last_ ? last_->next : first_) = &m;
    last_ = &m;
  }
  void push_front(MemoryOperation& m) {
    m.previous = nullptr;
    m.next = first_;
    (first_ ? first_->previous : last_) = &m;
    first_ = &m;
  }
  void remove(MemoryOperation& m) {
    (m.previous ? m.previous->next : first_) = m.next;
    (m.next ? m.next->previous : last_) = m.previous;
    m.next = m.previous = nullptr;
  }
  MemoryOperation* pop_front() {
    MemoryOperation* m = first_;
    if (m) remove(*m);
    return m;
  }

 private:
  MemoryOperation *first_ = nullptr, *last_ = nullptr;
};

}  // namespace echelon
