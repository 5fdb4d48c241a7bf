#pragma once
// What lies between a send and the receive that it belongs to: the operations of all ranks, the match queues in which
// they meet, and the two ways between them: as they are, or as frames through the exactly-once stream on a bad wire.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "world/sim/network.h"
#include "world/sim/scheduler.h"
#include "world/sim/simulation.h"

namespace echelon::sim {

class Transport;
class SimCompletionQueue;

// One send or receive. Belongs to the Transport's pool; `generation` tells a late message that it has been released.
class SimOperation final : public Operation {
 public:
  bool wait(double deadline) override;
  bool finished() override { return state_ != State::pending; }
  void release() override;
  std::string describe() const;

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
  SimCompletionQueue* watcher_ = nullptr;  // and what it calls this one:
  std::size_t watched_as_ = 0;
};

// One fiber for all that a rank may hear, instead of one for each.
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
    std::function<bool(int rank)> gone;                                               // whether it has
    std::function<void(int rank, const Scheduler::Describe& operation)> check_whole;  // throws PeerLost
    std::function<void(int at, int lost, const std::string& reason)> lost;            // at gives up on lost
  };
  Transport(Scheduler& scheduler, Network& network, const SimOptions& options, int ranks, SimReport& report,
            Ranks callbacks);
  ~Transport();

  Work send(int from, int to, Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(int at, int from, Channel channel, const Label& label, std::size_t bytes, std::span<std::byte> into,
               Sink sink);
  std::unique_ptr<CompletionQueue> completions(int at) { return std::make_unique<SimCompletionQueue>(*this, at); }
  bool cut(int from, int to) const;  // by a partition, now

 private:
  friend class SimOperation;
  friend class SimCompletionQueue;
  struct Handle {
    SimOperation* operation = nullptr;
    std::uint64_t generation = 0;
  };
  struct InFlight {
    int from = 0, to = 0;
    Channel channel = 0;
    Label label;
    std::vector<std::byte> bytes;
    Handle sender;  // whose operation is done when this is taken
  };
  struct MatchQueue {
    std::deque<InFlight> arrived;
    std::deque<Handle> expected;
  };
  struct Line {  // one end of a link with frames
    std::unique_ptr<ReliableLink> link;
    double timer = never;
    std::uint64_t frames = 0;
    std::deque<Handle> senders;  // of what is on its way to the other end
  };

  SimOperation& start(int owner, int peer, Channel channel, const Label& label, std::size_t bytes);
  void finish(SimOperation& operation);
  bool alive(const Handle& handle) const;
  bool wait(SimOperation& operation, double deadline);
  void release(SimOperation& operation);
  void deliver(InFlight message);
  void match(SimOperation& operation, InFlight message);
  MatchQueue& match_queue(int at, int from, Channel channel);
  Line& line(int at, int peer);
  void pump(int at, int peer);
  void put_on_wire(int from, int to, std::vector<std::byte> frame);
  void fly(int from, int to, std::vector<std::byte> frame, double late);

  Scheduler& scheduler_;
  Network& network_;
  const SimOptions& options_;
  SimReport& report_;
  Ranks ranks_;
  bool framed_;
  std::deque<SimOperation> operations_;
  std::vector<SimOperation*> unused_;
  std::vector<std::unordered_map<std::uint64_t, MatchQueue>> mailbox_;  // of each rank, by sender and channel
  std::vector<std::map<int, Line>> lines_;                              // of each rank, by peer
};

}  // namespace echelon::sim
