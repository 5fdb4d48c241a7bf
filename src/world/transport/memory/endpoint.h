#pragma once
// One rank's end of the messages that go through a Segment, whether the others are threads or processes.
//
// A message of at most `small_bytes` travels inside its record in the ring and is sent as soon as it is there. A larger
// one is only announced. If the receiver can see the bytes (threads: always; processes: when they lie in the segment)
// it reads them in place, or lets its Sink do so, and writes a receipt. Otherwise it asks for them once it has
// somewhere to put them, and they follow in pieces. So nobody stores more than a bounded number of small messages for
// later, and what is in a ring can always be taken out at once, whatever channel it is for: large messages both ways,
// or a channel that nobody listens to yet, never block another.
//
// Progress is made by whoever waits, for all messages of the rank. Any number of tasks may wait at once: one lock
// guards the state, and is not held while the bytes of a message are read in place.
//
// For worlds in which only some ranks share a machine (tcp, mpi): ranks here are the segment's own, 0 to ranks-1,
// `names` says what the program calls them; `wait_until` lets other kinds of operations be waited for without stopping
// the messages here.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "world/transport/memory/operation.h"
#include "world/transport/memory/segment.h"

namespace echelon {

class Endpoint {
 public:
  static constexpr std::size_t small_bytes = 2048;

  // `names` are the ranks' numbers in messages to people; empty: as in the segment. The segment outlives the endpoint.
  Endpoint(Segment& segment, int rank, std::vector<Rank> names = {});

  Work send(int to, Channel channel, Label label, std::span<const std::byte> bytes);
  Work receive(int from, Channel channel, Label label, std::size_t bytes, std::byte* into, Sink sink);

  // Waits until `done` is true, making progress meanwhile; false at the deadline. Throws PeerLost (with the words of
  // `operation`) if the world breaks. Who sets `done` does so sequentially consistently and then calls `wake`.
  bool wait_until(const std::atomic<bool>& done, double deadline, const std::function<std::string()>& operation);
  void wake() { mine_.wake_up.wake(); }
  void progress();  // takes what has come and sends what can be sent, without waiting

 private:
  friend struct MemoryOperation;

  // A message that came before anybody asked for it.
  struct Early {
    Record record;
    std::vector<std::byte> bytes;
    Early* next = nullptr;
  };
  struct Line {  // a channel from one peer
    OperationList posted;
    Early *first_early = nullptr, *last_early = nullptr;
  };
  struct Peer {
    Peer(RingMemory& to, RingMemory& from) : out(to), in(from) {}
    RingWriter out;
    RingReader in;
    OperationList queue;    // to be put into the ring, in order
    OperationList sending;  // by pieces
    std::unordered_map<Channel, Line> lines;
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
  void keep_early(Line& line, const Record& record, const std::byte* payload);
  void take_early(MemoryOperation& m, Line& line);
  void take_piece(const Record& record);
  void deliver_ready(std::unique_lock<std::mutex>& lock);
  void hand_over(MemoryOperation& m, std::size_t offset, std::span<const std::byte> piece);
  void finish(MemoryOperation& m);
  void write_receipt(int sender, std::uint32_t receipt, Receipt::State state, std::uint32_t token);
  void tell(int rank);  // that there is news

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
  std::deque<MemoryOperation> pool_;
  std::vector<MemoryOperation*> idle_;
  std::deque<Early> early_pool_;
  Early* idle_early_ = nullptr;
  std::vector<std::uint32_t> idle_receipts_;
  OperationList offered_;
  OperationList ready_;
  std::atomic<int> ready_count_{0};
  std::atomic<std::uint32_t> news_seen_{0};
  bool finished_any_ = false;
};

}  // namespace echelon
