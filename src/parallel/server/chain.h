#pragma once
// Replicated servers: the servers of a key form a chain on consecutive ranks. The first takes what workers send and
// passes it on, message by message in the order in which it handles them; so every replica makes the same updates. The
// last one answers: an answer means that the whole chain has the update.
//
// Any member may lose its state, as long as one is left. It says so to whoever writes to the chain (`lost`), and they
// say so to the first member that is left, which passes it on:
//   it was the first      what has come to it is lost. Workers send the next one again what had no answer.
//   it was in the middle  what was passed to it is lost. The one before it has kept the last message of every worker
//   for
//                         every key (an older one was answered, or the worker would not have written again), and sends
//                         them in their order to the one behind.
//   it was the last       its answers are lost. The one before it has every update. Workers ask again (`again`).
// Who has seen a message before knows that by its clock, and merges it once.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "world/mailbox/mailbox.h"

namespace echelon::exchanges {

struct ChainPlace {
  static constexpr int tags_before = 4;  // replicas read tags of their own: 5, 6, 7
  static constexpr int most_replicas = 4;
};

// Of the server at that position of the chain that begins on rank `head`.
inline std::uint16_t chain_tag(int position) {
  return static_cast<std::uint16_t>(position == 0 ? 0 : ChainPlace::tags_before + position);
}
inline Rank chain_rank(Rank head, int position, int workers) { return (head + position) % workers; }

// Which members of a chain have lost their state: a bit for each position.
using LostMembers = std::int64_t;
inline LostMembers member_bit(int position) { return LostMembers{1} << position; }
inline bool is_lost(LostMembers lost, int position) { return (lost & member_bit(position)) != 0; }
// The nearest that is left after `position` (-1: of all); `replicas` if there is none.
inline int member_after(LostMembers lost, int position, int replicas) {
  do ++position;
  while (position < replicas && is_lost(lost, position));
  return position;
}
inline int last_member(LostMembers lost, int replicas) {  // -1: none is left
  do --replicas;
  while (replicas >= 0 && is_lost(lost, replicas));
  return replicas;
}

// A message that was passed on names its first sender in the upper bits of its kind.
constexpr int kind_bits = 5;
constexpr Rank most_chain_ranks = (1 << (16 - kind_bits)) - 2;
// Of those bits the highest: the worker has not got the answer, so it is to be sent even if the message is known.
constexpr std::uint16_t again = 1 << (kind_bits - 1);
inline std::uint16_t passed_on(std::uint16_t kind, Rank from) {
  return static_cast<std::uint16_t>(kind | (from + 1) << kind_bits);
}
inline Rank first_sender(std::uint16_t kind) { return (kind >> kind_bits) - 1; }  // -1: it was not passed on
inline std::uint16_t kind_of(std::uint16_t kind) { return kind & ((1 << kind_bits) - 1); }

// What a worker has sent for a key, a push or an `await`, until it is answered.
struct UnansweredPush {
  bool waits = false, flushing = false;
  bool answer_lost = false;  // perhaps: the last of the chain was lost meanwhile
  std::int64_t flushes = 0;  // so far: an answer to an earlier one may come twice
  MessageHeader head;
  std::vector<std::byte> bytes;
  std::int64_t enough = 0;  // what the answer must have seen at least: of the own pushes, or (`await`) of everybody's

  void keep(const MessageHeader& sent, std::span<const std::byte> payload, std::int64_t enough_for_it) {
    waits = true, answer_lost = false;
    head = sent;
    if (payload.data() != bytes.data()) bytes.assign(payload.begin(), payload.end());
    enough = enough_for_it;
  }
  bool is_answered_by(std::int64_t seen) {  // the same answer may come from two servers
    if (!waits || seen < enough) return false;
    waits = false;
    return true;
  }
};

// The last messages that a member has passed on.
class PassedMessages {
 public:
  void keep(std::size_t place, const MessageHeader& head, std::span<const std::byte> payload);  // in place of its last
  struct Kept {
    MessageHeader head;
    std::vector<std::byte> bytes;
    std::uint64_t number = 0;  // 0: none yet
  };
  std::vector<const Kept*> in_order() const;

 private:
  std::vector<Kept> places_;
  std::uint64_t passed_ = 0;
};

}  // namespace echelon::exchanges
