#pragma once
// A message on its way over TCP, as the program's side sees it (a Work) and as the I/O thread's side does. They come
// from a pool that belongs to the world and are used again and again: no message allocates one.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "world/first_failure.h"
#include "world/transport/memory/endpoint.h"
#include "world/world.h"

namespace echelon::tcp {

struct Transfer;
class TransferPool;

// Who moves the bytes of a Transfer.
class Carrier {
 public:
  virtual void abandon(Transfer& transfer) = 0;  // its memory will go away

 protected:
  ~Carrier() = default;
};

struct Transfer final : Operation {
  enum State : std::uint32_t { pending, awaited, done, lost, ended, mismatched };

  bool wait(double deadline) override;
  bool finished() override { return settled(); }
  void release() override;
  void finish(State how);  // wakes who waits; do not touch it afterwards
  bool settled() const;    // finished, one way or another

  Carrier* carrier = nullptr;
  TransferPool* pool = nullptr;
  int peer = 0;
  Channel channel = 0;
  Label label;
  bool sends = false;
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  std::size_t bytes = 0;
  Sink sink;
  std::uint64_t number = 0;  // of the message on its channel
  std::string problem;       // of a mismatch
  Transfer* next = nullptr;  // in a queue, or in the pool
  std::atomic<std::uint32_t> state = pending;
  std::atomic<bool> over = false;  // with host_ranks: what their Endpoint looks at while it waits
};

std::string describe(const Label& label, std::uint64_t bytes);  // "all-reduce 7, step 2, of float32 (4096 bytes)"

class TransferPool {
 public:
  TransferPool(const FirstFailure& failure, Clock& clock);
  Transfer& take();
  void give_back(Transfer& transfer);
  // Who waits for a Transfer must also move the messages of the ranks on this machine. Before the first `take`.
  void wait_with(Endpoint* endpoint) { endpoint_ = endpoint; }

 private:
  friend struct Transfer;
  const FirstFailure& failure_;
  Clock& clock_;
  std::mutex mutex_;
  std::deque<Transfer> all_;
  Transfer* free_ = nullptr;
  Endpoint* endpoint_ = nullptr;
};

// First come, first served, through Transfer::next.
class TransferQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  Transfer* front() const { return first_; }
  void push(Transfer& t) {
    t.next = nullptr;
    (first_ ? last_->next : first_) = &t;
    last_ = &t;
  }
  Transfer& pop() {
    Transfer& t = *first_;
    first_ = t.next;
    return t;
  }
  bool remove(Transfer& t);

 private:
  Transfer *first_ = nullptr, *last_ = nullptr;
};

}  // namespace echelon::tcp
