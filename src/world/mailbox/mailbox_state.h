#pragma once
// The inside of a Mailbox (world/mailbox/mailbox.h). Private to mailbox.cpp (making, taking, closing), mailbox_send.cpp
// (messages that leave) and mailbox_receive.cpp (messages that arrive). One lock guards the state; it is never held
// across a wait.

#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "world/channels.h"
#include "world/mailbox/message_pool.h"

namespace echelon {

// The two transfers of a message, as their labels tell them apart.
enum MessagePart : std::uint16_t { header_step = 0, payload_step = 1 };
inline Label message_label(std::uint32_t sequence, MessagePart step) { return {.step = step, .number = sequence}; }

class Mailbox::State {
 public:
  State(World& world, std::size_t most_bytes, const std::optional<std::vector<Rank>>& peers);
  ~State();

  void post(Rank to, const MessageHeader& head, std::span<const std::byte> payload);
  void deliver(Rank from, const MessageHeader& head, std::span<const std::byte> payload);
  void leave_through(Outlet outlet) { outlet_ = std::move(outlet), closed_ = true; }
  std::size_t on_their_way(Rank to);
  void leave_by_key(std::size_t window);
  bool try_take(int tag, Message& message);
  bool take(int tag, Message& message, double deadline);
  void shut(int tag);
  void follow(MessageOrder& order);
  void close(double timeout);
  Counts sent() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct TagQueue {
    MessageQueue messages;
    bool shut = false;
    std::unique_ptr<Event> changed;
  };
  struct Peer {
    Rank rank = 0;
    bool posts = true;       // its goodbye has not arrived
    bool reading = true;     // its reader has not ended
    std::uint32_t sent = 0;  // messages to it
    MessageQueue on_their_way;
    // Of its reader: the message that arrives next.
    std::uint32_t sequence = 0;
    WireHeader wire;
    MessageBuffer* buffer = nullptr;  // with its header, while its payload is received
    Work coming;                      // its header or payload
  };

  struct Waiting {  // a message that waits to leave by its key
    MessageBuffer* buffer;
    Peer* to;
    std::uint64_t number;
    bool operator<(const Waiting& o) const {  // as a heap wants it: the last one leaves first
      return std::tuple(o.buffer->wire.key, o.number) < std::tuple(buffer->wire.key, number);
    }
  };

  TagQueue& tag(int number) {
    invariant(number >= 0 && number < tags, "a rank has that tag");
    return tag_queues_[static_cast<std::size_t>(number)];
  }
  Peer* peer(Rank rank);
  // `awaited`: another message is to be taken first, which is not here yet.
  enum class Next { taken, nothing, awaited };
  Next next(int number, Message& message, bool looks, bool& over, std::uint64_t& seen);
  MessageBuffer* pop(TagQueue& from, int number, bool looks, Next& outcome);
  void abandon_order();
  void enqueue(MessageBuffer& buffer);
  MessageBuffer& empty_buffer(std::size_t bytes);
  void send(Peer& to, MessageBuffer& buffer);
  void reap(Peer& to);
  void send_by_key(std::size_t window);
  void collect(Peer& to, const MessageBuffer& last);
  void give_back(MessageBuffer& buffer);
  void tell_peers(WireHeader::What what);
  void wait_while(bool Peer::*state, double deadline);
  void wait_for_sender(double deadline, double timeout);
  void stop();

  void read_all(Peer& from);
  void read_everybody();
  void expect_message(Peer& from);
  bool take_what_came(Peer& from);  // false: it was the last
  void take_header(Peer& from);
  template <typename Waits>
  bool wait_for(const Waits& waits);  // false: the mailbox is being destroyed
  bool wait(Work& work);              // the same
  void left(Peer& peer, bool Peer::*state);
  void report(std::exception_ptr failure);

  World& world_;
  const std::size_t most_bytes_;
  const int exceptions_ = std::uncaught_exceptions();
  Outlet outlet_;  // empty: messages go to peers
  const std::shared_ptr<MessagePool> pool_ = std::make_shared<MessagePool>();

  // Guards everything below; never held while waiting, for in a simulated world tasks are not threads.
  mutable std::mutex mutex_;
  std::array<TagQueue, tags> tag_queues_;
  std::unique_ptr<CompletionQueue> completions_;  // of the receives from all peers; null: each has its own reader
  std::vector<Peer> peers_;                       // by rank
  std::unique_ptr<Event> progress_;               // a peer's `posts` or `reading`, or `sending_`, has changed
  std::exception_ptr failure_;
  MessageOrder* order_ = nullptr;
  Counts counts_;
  std::size_t window_ = 0;        // above 0: messages leave by key
  std::vector<Waiting> waiting_;  // a heap
  std::uint64_t numbered_ = 0;
  bool sending_ = false;           // the task that sends them runs
  std::unique_ptr<Event> queued_;  // a message was added to them, or none will be any more
  bool closing_ = false, closed_ = false, stopping_ = false;
  std::vector<std::unique_ptr<Task>> readers_;
  std::unique_ptr<Task> sender_;  // of those that wait
};

}  // namespace echelon
