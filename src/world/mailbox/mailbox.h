#pragma once
// Messages: messages from anybody, of any length, in the order of their arrival. For exchanges in which ranks do not
// take turns (parameter servers, gossip); a collective knows whom it hears from and needs none of this.
//
// A rank has one Mailbox. A message is addressed to a rank and one of its tags; a task takes the messages of a tag one
// by one. Messages from one rank to one tag arrive in the order in which they were posted. A rank may write to itself:
// that costs no message. `post` copies the payload into memory of its own (a pool that grows to what is on its way at
// once), so the caller's may be used again; it never waits for the receiver. What has come waits in memory too, until
// it is taken: who posts without ever being answered must be told when to stop by somebody.
//
// On the wire a message is one message of `header_bytes` and, if there is a payload, a second one with it. What comes
// is checked before memory is taken for it: a payload is at most `most_bytes`.
//
// One reader task for each rank that may write, or one for all in a simulated world. Mailbox may be used by all tasks
// of its rank, which must have left it before it is destroyed. Collective: all ranks of the world make one, and `close`
// it; then they may make another.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "world/world.h"

namespace echelon {

struct MessageBuffer;
class MessagePool;

struct MessageHeader {
  std::uint16_t kind = 0;    // the meaning is the users'
  std::uint16_t tag = 0;     // of the receiver; below Mailbox::tags
  std::uint32_t key = 0;     // which part of the model
  std::int64_t clock = 0;    // the sender's step
  double number = 0;         // a weight, a rate, ...
  std::uint64_t second = 0;  // whatever else
};

// Owns its memory, which goes back to the pool with it (or when the next message is taken into it); may outlive the
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
  std::span<std::byte> payload();              // the taker may work in it
  std::span<const float> floats() const;       // Failure if it is no whole number of them
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
  static constexpr int messages_of_close = 2;  // to each peer, of header_bytes

  // `peers`: the other ranks with which this one exchanges messages, if not all; if A names B, B must name A.
  Mailbox(World& world, std::size_t most_bytes, std::optional<std::vector<Rank>> peers = {});
  // If it was not closed, something went wrong: what the program throws will tell the others, and if it throws nothing,
  // the world is given up, so that nobody waits for ever.
  ~Mailbox();

  // Failure if the payload is longer than `most_bytes` or the mailbox is closed. Whom an earlier message did not reach,
  // `take` tells.
  void post(Rank to, const MessageHeader& head, std::span<const std::byte> payload = {});
  void post(Rank to, const MessageHeader& head, std::span<const float> payload) {
    post(to, head, std::as_bytes(payload));
  }

  // Messages to that rank that have not left yet, or not come yet where the world cannot tell: how busy the link is.
  std::size_t on_their_way(Rank to);

  // From now on messages with a payload wait in the mailbox while more than `window` bytes are on their way, and then
  // leave in the order of their keys, the smallest first; those with the same key in the order of their posting.
  // Messages without a payload go at once, so the order between the two kinds is lost, and so is that between keys.
  // Once.
  void leave_by_key(std::size_t window);

  // The next message of the tag. False at the deadline (of the world's clock), or when the tag is empty and either shut
  // or the mailbox closed. Throws what a reader met (PeerLost, or Failure about a message that makes no sense), even if
  // there are messages left.
  bool take(int tag, Message& message, double deadline);
  bool try_take(int tag, Message& message);  // never waits
  void shut(int tag);                        // wakes who waits there; messages that come later are still kept

  // Every rank has posted its last message: waits until all that were posted to this rank have come and all that it has
  // posted are gone. Collective. Messages that came can still be taken. TooLate if a rank does not do so in `timeout`
  // seconds.
  void close(double timeout = 900);

  struct Counts {  // to other ranks, without the goodbyes of `close` (two messages of header_bytes to each peer)
    std::uint64_t messages = 0, transfers = 0, bytes = 0;  // bytes with headers
  };
  Counts sent() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace echelon
