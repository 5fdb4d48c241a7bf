#pragma once
// Letters: messages from anybody, of any length, in the order of their arrival. For exchanges in which ranks do not take
// turns (parameter servers, gossip); a collective knows whom it hears from and needs none of this.
//
// A rank has one Mail. A letter is addressed to a rank and one of its boxes; a task takes the letters of a box one by
// one. Letters from one rank to one box arrive in the order in which they were posted. A rank may write to itself: that
// costs no message. `post` copies the payload into memory of its own (a pool that grows to what is on its way at once),
// so the caller's may be used again; it never waits for the receiver.
//
// On the wire a letter is one message of `header_bytes` and, if there is a payload, a second one with it. What comes
// is checked before memory is taken for it: a payload is at most `most_bytes`.
//
// One reader task for each other rank. Mail may be used by all tasks of its rank. Collective: all ranks of the world
// make one, and `close` it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "world/world.h"

namespace echelon {

struct LetterHead {
  std::uint16_t kind = 0;    // the meaning is the users'
  std::uint16_t box = 0;     // of the receiver; below Mail::boxes
  std::uint32_t key = 0;     // which part of the model
  std::int64_t clock = 0;    // the sender's step
  double number = 0;         // a weight, a rate, ...
  std::uint64_t second = 0;  // whatever else
};

class Letter {
 public:
  Rank from = 0;
  LetterHead head;
  std::span<const std::byte> payload() const { return bytes_; }
  std::span<const float> floats() const {  // Failure if it is no whole number of them
    return as_floats();
  }
  // ... owns its memory, which goes back to the pool with it. Move-only.
 private:
  friend class Mail;
  std::span<const float> as_floats() const;
  std::vector<std::byte> bytes_;
};

class Mail {
 public:
  static constexpr int boxes = 4;
  static constexpr std::size_t header_bytes = 48;

  Mail(World& world, std::size_t most_bytes);
  ~Mail();  // if not closed (something went wrong), gives the world up so that nobody waits for ever

  void post(Rank to, const LetterHead& head, std::span<const std::byte> payload = {});
  void post(Rank to, const LetterHead& head, std::span<const float> payload) { post(to, head, std::as_bytes(payload)); }

  // The next letter of the box. False at the deadline (of the world's clock), or when the box is shut and empty.
  // Throws what a reader met (PeerLost).
  bool take(int box, Letter& letter, double deadline);
  bool try_take(int box, Letter& letter);
  void shut(int box);  // wakes who waits there; letters that come later are still kept

  // Every rank has posted its last letter: waits until all that were posted to this rank have come and all that it has
  // posted are gone. Collective. Letters that came can still be taken.
  void close();

  struct Counts {
    std::uint64_t letters = 0, bytes = 0;  // to other ranks; with headers
  };
  Counts sent() const;

 private:
  class Office;
  std::unique_ptr<Office> office_;
};

}  // namespace echelon
