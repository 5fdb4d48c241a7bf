#pragma once
// The sends and receives of all ranks. A message goes straight through the network if the fault plan has nothing
// against messages, and through world/sim/connections.h otherwise.

#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "world/sim/connections.h"
#include "world/transport/matcher.h"

namespace echelon::sim {

class Transport;
class SimCompletionQueue;

// One send or receive, from the Transport's pool. `generation` tells a late message that it was released.
class SimOperation final : public Operation {
 public:
  bool wait(double deadline) override;
  bool finished() override { return state_ != State::pending; }
  void release() override;
  std::string describe() const;

  SimOperation *next = nullptr, *previous = nullptr;  // in its channel's queue

 private:
  friend class Transport;
  friend class SimCompletionQueue;
  enum class State { pending, done, mismatch };
  Transport* transport_ = nullptr;
  std::uint64_t generation_ = 0;
  State state_ = State::done;
  bool sending_ = false, taken_ = false;
  int owner_ = 0, peer_ = 0;
  Channel channel_ = 0;
  Label label_;
  std::size_t bytes_ = 0;
  std::span<std::byte> into_;
  Sink sink_;
  std::vector<std::byte> for_sink_;
  std::string mismatch_;
  std::vector<Strand*> waiting_;
  SimCompletionQueue* watcher_ = nullptr;
  std::size_t watched_as_ = 0;  // its number there
};

// Lets one fiber of a rank wait for many operations.
class SimCompletionQueue final : public CompletionQueue {
 public:
  SimCompletionQueue(Transport& transport, int owner) : transport_(transport), owner_(owner) {}
  void watch(const Work& work, std::size_t number) override;
  bool next(std::size_t& number, double deadline) override;

 private:
  friend class Transport;
  void happened(std::size_t number);

  Transport& transport_;
  int owner_;
  std::deque<std::size_t> finished_;
  Strand* waiting_ = nullptr;
};

class Transport {
 public:
  // What the transport asks of the ranks.
  struct Ranks {
    std::function<void(int rank)> check_alive;                                        // throws if it has crashed
    std::function<bool(int rank)> crashed;                                            // whether it has
    std::function<void(int rank, const Scheduler::Describe& operation)> check_whole;  // throws PeerLost
    std::function<void(int at, int lost, const std::string& reason)> lost;  // `at` has lost its connection to `lost`
  };
  Transport(Scheduler& scheduler, Network& network, const SimOptions& options, int ranks, SimReport& report,
            Ranks callbacks);

  Work send(int from, int to, Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(int at, int from, Channel channel, const Label& label, std::size_t bytes, std::span<std::byte> into,
               Sink sink);
  std::unique_ptr<CompletionQueue> completions(int at) { return std::make_unique<SimCompletionQueue>(*this, at); }
  bool cut(int from, int to) const { return connections_.cut(from, to); }  // by a partition, now

 private:
  friend class SimOperation;
  friend class SimCompletionQueue;
  using Channels = Matcher<SimOperation, SimMessage>;

  SimOperation& start(int owner, int peer, Channel channel, const Label& label, std::size_t bytes);
  void finish(SimOperation& operation);
  static bool alive(const OperationHandle& handle);
  bool wait(SimOperation& operation, double deadline);
  void release(SimOperation& operation);
  void deliver(SimMessage message);
  void match(SimOperation& operation, SimMessage message);
  Channels::Queue& queue_of(int at, int from, Channel channel);

  Scheduler& scheduler_;
  Network& network_;
  const SimOptions& options_;
  SimReport& report_;
  const Ranks ranks_;
  Connections connections_;
  Pool<SimOperation> operations_;
  Channels channels_;
  std::vector<std::unordered_map<std::uint64_t, Channels::Queue>> queues_;  // of each rank, by sender and channel
};

}  // namespace echelon::sim
