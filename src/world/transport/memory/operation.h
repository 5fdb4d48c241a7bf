#pragma once
// One send or receive of a rank through shared memory, from a pool of its Endpoint. Only the Endpoint looks inside.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "world/intrusive_list.h"
#include "world/transport/memory/ring.h"
#include "world/world.h"

namespace echelon {

class Endpoint;

struct MemoryOperation final : public Operation {
  // The Endpoint's lock guards everything but `done`.
  enum class State {
    idle,        // in the pool
    queued,      // sending: not yet in the ring
    offered,     // sending: in the ring; the receiver will write the receipt
    sending,     // sending: by pieces
    pending,     // receiving: its message has not arrived
    ready,       // receiving: its bytes can be read where they lie
    delivering,  // receiving: a task is reading them now
    filling,     // receiving: by pieces
    finished,
    abandoned,  // nobody waits for it, but the other rank may still refer to it: never used again
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
  std::size_t moved = 0;  // bytes that were sent or received in pieces
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  Sink sink;
  std::uint32_t receipt = 0;
  Record came{};  // receiving: the record that announced the message
  MemoryOperation *next = nullptr, *previous = nullptr;
};

using OperationList = IntrusiveList<MemoryOperation>;

}  // namespace echelon
