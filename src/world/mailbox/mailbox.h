#pragma once
// Messages from any rank, of any length, in the order of their arrival. For exchanges in which ranks do not take turns
// (parameter servers, gossip); a collective knows from whom it receives and needs none of this.
//
// A rank has one Mailbox. A message is addressed to a rank and one of its tags; a task takes the messages of a tag one
// by one. Messages from one rank to one tag arrive in the order in which they were posted. A rank may post to itself:
// that sends nothing. `post` copies the payload into a buffer of the mailbox (from a pool that grows to the most that
// is on its way at once), so the caller's memory may be used again; it never waits for the receiver. Messages that have
// arrived wait in buffers too, until they are taken: nothing here stops a rank that posts faster than another one
// takes.
//
// On the channel a message is one transfer of `header_bytes` and, if there is a payload, a second one with that. A
// header is checked before memory is taken for its payload, which has at most `most_bytes`.
//
// One reader task for each rank that may post, or one for all in a simulated world. A Mailbox may be used by all tasks
// of its rank, which must not use it any more when it is destroyed. Collective: all ranks of the world make one, and
// `close` it; then they may make another.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "world/world.h"

namespace echelon {

struct MessageBuffer;
class MessageOrder;
class MessagePool;

struct MessageHeader {
  std::uint16_t kind = 0;    // the meaning is the users'
  std::uint16_t tag = 0;     // of the receiver; below Mailbox::tags
  std::uint32_t key = 0;     // which part of the model
  std::int64_t clock = 0;    // the sender's step
  double number = 0;         // a weight, a rate, ...
  std::uint64_t second = 0;  // whatever else
};

// Owns its buffer, which goes back to the pool with it (or when the next message is taken into it); may outlive the
// Mailbox.
class Message {
 public:
  Message() = default;
  Message(Message&& other) noexcept;
  Message& operator=(Message&& other) noexcept;
  ~Message();

  Rank from = 0;
  MessageHeader head;
  std::span<const std::byte> payload() const;  // aligned to 64 bytes
  std::span<std::byte> payload();              // whoever took it may change it
  std::span<const float> floats() const;       // Failure if the payload is not a whole number of them
  std::span<float> floats();

 private:
  friend class Mailbox;
  std::shared_ptr<MessagePool> pool_;
  MessageBuffer* buffer_ = nullptr;
};

class Mailbox {
 public:
  static constexpr int tags = 8;
  static constexpr std::size_t header_bytes = 48;
  static constexpr int transfers_of_close = 2;  // to each peer, of header_bytes

  // `peers`: the other ranks with which this one exchanges messages, if not all; if A names B, B must name A.
  Mailbox(World& world, std::size_t most_bytes, std::optional<std::vector<Rank>> peers = {});
  // A mailbox without a network, for one task: what is posted is given to `outlet`, and what comes is put in with
  // `deliver`.
  using Outlet = std::function<void(Rank to, const MessageHeader& head, std::span<const std::byte> payload)>;
  Mailbox(World& world, std::size_t most_bytes, Outlet outlet);
  // If it was not closed, something went wrong: the program throws, which tells the others; if it does not, the job is
  // aborted, so that nobody waits for ever.
  ~Mailbox();

  // Failure if the payload is longer than `most_bytes` or the mailbox is closed. That an earlier message did not reach
  // its rank is thrown by `take`.
  void post(Rank to, const MessageHeader& head, std::span<const std::byte> payload = {});
  void post(Rank to, const MessageHeader& head, std::span<const float> payload) {
    post(to, head, std::as_bytes(payload));
  }

  void deliver(Rank from, const MessageHeader& head, std::span<const std::byte> payload);

  // Messages to that rank whose sends are not done (in some worlds: that have not arrived): how busy the link is.
  std::size_t on_their_way(Rank to);

  // From now on messages with a payload wait in the mailbox while more than `window` bytes are on their way, and then
  // leave in the order of their keys, the smallest first; those with the same key in the order in which they were
  // posted. Messages without a payload leave at once. So there is no order between the two kinds, nor between keys.
  // Call it once.
  void leave_by_key(std::size_t window);

  // The next message of the tag. False at the deadline (of the world's clock), or when there is none and the tag is
  // shut or the mailbox closed. Throws what went wrong in a reader (PeerLost, or Failure about a message that makes no
  // sense), even if there are messages left.
  bool take(int tag, Message& message, double deadline);
  bool try_take(int tag, Message& message);  // never waits
  void shut(int tag);  // ends the waits of `take` for this tag; messages that arrive later are still kept

  // From now on what is taken is noted there, and what was noted is taken again in that order: of two messages the one
  // that was taken first waits for nobody, the other one for it. It outlives the mailbox.
  void follow(MessageOrder& order);

  // This rank posts no more: waits until all messages that were posted to it have arrived and all that it posted have
  // been sent. Collective. Messages that have arrived can still be taken. TooLate if a rank does not close its mailbox
  // within `timeout` seconds.
  void close(double timeout = 900);

  struct Counts {                                          // to other ranks, without what `close` sends
    std::uint64_t messages = 0, transfers = 0, bytes = 0;  // bytes: with headers
  };
  Counts sent() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace echelon
