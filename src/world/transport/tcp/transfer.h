#pragma once
// One send or receive over TCP: an Operation for the program's tasks, a queue entry for the connection that moves its
// bytes. Transfers come from a pool of the world, so that starting one allocates nothing.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "world/intrusive_list.h"
#include "world/pool.h"
#include "world/transport/first_failure.h"
#include "world/transport/memory/endpoint.h"
#include "world/world.h"

namespace echelon::tcp {

struct Transfer;
class TransferPool;

// The connection that moves the bytes of a Transfer.
class Carrier {
 public:
  virtual void abandon(Transfer& transfer) = 0;  // ends the use of its memory

 protected:
  ~Carrier() = default;
};

struct Transfer final : Operation {
  enum State : std::uint32_t { pending, awaited, done, lost, ended, mismatched };

  bool wait(double deadline) override;
  bool finished() override { return settled(); }
  void release() override;
  void finish(State how);  // wakes the task that waits; do not touch the transfer afterwards
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
  std::uint64_t number = 0;                       // of the message on its channel
  std::string problem;                            // of a mismatch
  Transfer *next = nullptr, *previous = nullptr;  // in a TransferQueue
  std::atomic<std::uint32_t> state = pending;
  std::atomic<bool> over = false;  // where ranks share memory: what their Endpoint looks at while it waits
};

std::string describe(const Label& label, std::uint64_t bytes);  // "all-reduce 7, step 2, of float32 (4096 bytes)"

class TransferPool {  // thread-safe
 public:
  TransferPool(const FirstFailure& failure, Clock& clock);
  struct Route {
    Carrier& carrier;
    int peer;
    Channel channel;
    const Label& label;
  };
  Transfer& take(const Route& route, std::span<const std::byte> from);                              // to send
  Transfer& take(const Route& route, std::byte* into /* or null */, std::size_t bytes, Sink sink);  // to receive
  void give_back(Transfer& transfer);
  // A task that waits for a Transfer then makes progress for the ranks on this machine too. Before any task waits.
  void wait_with(Endpoint* endpoint) { endpoint_ = endpoint; }

 private:
  friend struct Transfer;
  Transfer& take(const Route& route);
  const FirstFailure& failure_;
  Clock& clock_;
  std::mutex mutex_;
  Pool<Transfer> pool_;
  Endpoint* endpoint_ = nullptr;
};

using TransferQueue = IntrusiveList<Transfer>;  // first come, first served

}  // namespace echelon::tcp
