#pragma once
// One rank's sends and receives through a Segment, whether the other ranks are threads or processes.
//
// A message of at most `small_bytes` travels inside its record in the ring; its send is done as soon as it is there. A
// larger message is only announced. If the receiver can see the bytes (threads: always; processes: when they lie in the
// segment), it reads them in place, or lets its Sink do so, and writes a receipt. Otherwise it asks for them once its
// receive has begun, and they follow in pieces. So a receiver keeps at most a bounded number of unexpected small
// messages, and a record can always be taken out of its ring at once, whatever its channel: neither large messages both
// ways nor a channel on which nobody receives yet block another channel.
//
// The task that waits makes progress for all sends and receives of the rank. Any number of tasks may wait at once: one
// lock guards the state; it is not held while bytes are read in place.
//
// For worlds in which only some ranks share a machine (tcp, mpi): ranks here are those of the segment, 0 to ranks-1;
// `names` are their numbers in the world. `wait_until` waits for another transport's operation and makes progress here
// meanwhile.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/transport/matcher.h"
#include "world/transport/memory/operation.h"
#include "world/transport/memory/segment.h"

namespace echelon {

class Endpoint {
 public:
  static constexpr std::size_t small_bytes = 2048;

  // `names` are the ranks' numbers in texts; empty: as in the segment. The segment outlives the endpoint.
  Endpoint(Segment& segment, int rank, std::vector<Rank> names = {});

  Work send(int to, Channel channel, Label label, std::span<const std::byte> bytes);
  Work receive(int from, Channel channel, Label label, std::size_t bytes, std::byte* into, Sink sink);

  // Waits until `done` is true, making progress meanwhile; false at the deadline. Throws PeerLost (during what
  // `operation` returns) if the job fails. Whoever sets `done` does so sequentially consistently and then calls `wake`.
  bool wait_until(const std::atomic<bool>& done, double deadline, const std::function<std::string()>& operation);
  void wake() { mine_.wake_up.wake(); }
  void progress();  // takes what has arrived and sends what can be sent, without waiting

 private:
  friend struct MemoryOperation;

  struct Arrival {  // an unexpected message
    Record record;
    std::vector<std::byte> bytes;  // if it is a small one; has room for any
  };
  using Channels = Matcher<MemoryOperation, Arrival>;
  struct Peer {
    Peer(RingMemory& to, RingMemory& from) : out(to), in(from) {}
    RingWriter out;
    RingReader in;
    OperationList queue;    // to be put into the ring, in order
    OperationList sending;  // by pieces
    std::unordered_map<Channel, Channels::Queue> channels;
  };

  bool wait(MemoryOperation& m, double deadline);
  template <typename Describe, typename BeforeSleep>
  bool wait_loop(const std::atomic<bool>& done, double deadline, Describe&& describe, BeforeSleep&& before_sleep);
  void release(MemoryOperation& m);
  void let_go(MemoryOperation& m, std::unique_lock<std::mutex>& lock);
  [[noreturn]] void throw_mismatch(const MemoryOperation& m) const;
  std::string describe(const MemoryOperation& m) const;
  void look_for_ended_peer(MemoryOperation& m);

  bool something_came() const;
  void drain(int from);
  void flush(int to);
  bool put(MemoryOperation& m);
  bool put_piece(MemoryOperation& m);
  void read_receipts();
  void match(MemoryOperation& m, const Record& record, const std::byte* payload);
  void keep(Channels::Queue& queue, const Record& record, const std::byte* payload);
  void take_piece(const Record& record);
  void deliver_ready(std::unique_lock<std::mutex>& lock);
  void hand_over(MemoryOperation& m, std::size_t offset, std::span<const std::byte> piece);
  void finish(MemoryOperation& m);
  void write_receipt(int sender, std::uint32_t receipt, Receipt::State state, std::uint32_t token);
  void tell(int rank);  // that a receipt was written or its full ring has room

  MemoryOperation& get(bool is_send, int peer, Channel channel, Label label, std::size_t bytes);
  Rank name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool visible(const MemoryOperation& m) const;

  Segment& segment_;
  const int rank_;
  const std::vector<Rank> names_;
  RankBlock& mine_;
  const SpinPolicy spin_policy_;

  mutable std::mutex lock_;
  std::deque<Peer> peers_;
  Pool<MemoryOperation> operations_;
  Channels channels_;
  std::vector<std::uint32_t> idle_receipts_;
  OperationList offered_;
  OperationList ready_;
  std::atomic<int> ready_count_{0};
  std::atomic<std::uint32_t> changes_seen_{0};
  bool finished_any_ = false;
};

}  // namespace echelon
