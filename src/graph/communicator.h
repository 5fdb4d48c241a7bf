#pragma once
// How kernels reach other ranks: what the communication ops (graph/ops/communication.h) call while a graph runs. A
// graph that was cut for several ranks (plan/place.h) numbers its messages; who sends message 3 to whom, and on which
// channel, is known to whoever implements this (parallel/planned/stage_messages.h).
//
// One thread calls it, in the order of the graph's nodes. Throws PeerLost, Mismatch and TooLate as any wait of a rank.

#include <cstddef>
#include <span>

namespace echelon {

struct StepContext;

class Communicator {
 public:
  virtual ~Communicator() = default;
  // `bytes` may be changed as soon as it returns.
  virtual void send(int message, const StepContext& step, std::span<const std::byte> bytes) = 0;
  virtual void receive(int message, const StepContext& step, std::span<std::byte> into) = 0;

  // Where ranks that have the same parameters share them, or the sums of their gradients, in parts
  // (parallel/planned/state_exchange.h). `parameter` is the graph's. All ranks that share call these in the same order.
  virtual void start_gather(int parameter, std::span<std::byte> into);   // `into` is not touched until it is finished
  virtual void finish_gather(int parameter, std::span<std::byte> into);  // the parameter is there
  virtual void contribute(int parameter, const StepContext& step, std::span<const std::byte> gradient);
};

}  // namespace echelon
