#pragma once
// Replicated servers: the servers of a key form a chain on consecutive ranks. The first takes what workers send and
// passes it on, letter by letter in the order in which it handles them; so every replica makes the same updates. The
// last one answers: an answer means that the whole chain has the update. If the first loses its state, workers write to
// the next one, and send again what had no answer; who has seen a letter before knows that by its clock.

#include <cstdint>
#include <vector>

#include "world/mail.h"

namespace echelon::exchanges {

struct ChainPlace {
  static constexpr int boxes_before = 4;  // replicas read boxes of their own: 5, 6, 7
  static constexpr int most_replicas = 4;
};

// Of the server at that position of the chain that begins on rank `head`.
inline std::uint16_t chain_box(int position) {
  return static_cast<std::uint16_t>(position == 0 ? 0 : ChainPlace::boxes_before + position);
}
inline Rank chain_rank(Rank head, int position, int workers) { return (head + position) % workers; }

// A letter that was passed on names its first sender in the upper bits of its kind.
constexpr int kind_bits = 5;
constexpr Rank most_chain_ranks = (1 << (16 - kind_bits)) - 2;
inline std::uint16_t passed_on(std::uint16_t kind, Rank from) {
  return static_cast<std::uint16_t>(kind | (from + 1) << kind_bits);
}
inline Rank first_sender(std::uint16_t kind) { return (kind >> kind_bits) - 1; }  // -1: it was not passed on
inline std::uint16_t kind_of(std::uint16_t kind) { return kind & ((1 << kind_bits) - 1); }

// What a worker has sent for a key, a push or an `await`, until it is answered.
struct UnansweredPush {
  bool waits = false, flushing = false;
  LetterHead head;
  std::vector<std::byte> bytes;
  std::int64_t enough = 0;  // what the answer must have seen at least: of the own pushes, or (`await`) of everybody's

  void keep(const LetterHead& sent, std::span<const std::byte> payload, std::int64_t enough_for_it) {
    waits = true;
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

}  // namespace echelon::exchanges
