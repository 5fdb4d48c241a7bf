// A server as part of a chain (server_chain.h): passing letters on, knowing them again, and losing its state.

#include "parallel/exchanges/server_chain.h"

#include <algorithm>

#include "parallel/exchanges/server_shard.h"

namespace echelon::exchanges {

// Whether the letter is to be handled here, as its first sender's; if there is a next server, it has been passed on to
// it before, so that the order is the same there.
bool ServerShard::is_passed(Letter& letter) {
  if (place_.replicas == 1) return true;
  if (dead_ != 0) return false;
  const std::uint16_t kind = kind_of(letter.head.kind);
  if (const Rank sender = first_sender(letter.head.kind); sender >= 0) {
    const Rank before = (parts_.rank() - 1 + parts_.workers()) % parts_.workers();
    if (letter.from != before || sender >= parts_.workers() || place_.position == 0)
      fail("rank {} passed on a letter that is not for this server", letter.from);
    letter.from = sender;
    letter.head.kind = kind;
  }
  if (place_.dies_at >= 0 && kind != flush && slices_.front().version >= place_.dies_at) {
    lose_state();
    return false;
  }
  if (!is_last()) {
    LetterHead head = letter.head;
    head.kind = passed_on(kind, letter.from);
    head.box = chain_box(place_.position + 1);
    parts_.mail->post((parts_.rank() + 1) % parts_.workers(), head, std::as_const(letter).payload());
  }
  return true;
}

// A worker sends what had no answer again when a server is lost. In rounds: its contribution to the open one is there.
bool ServerShard::was_seen(const Slice& s, const Letter& letter) const {
  if (place_.replicas == 1) return false;
  const bool seen = s.clocks[static_cast<std::size_t>(letter.from)] > letter.head.clock;
  return parts_.sync.in_rounds() ? seen && letter.head.clock >= s.round : seen;
}

// As a crash of this server would: all that it knows is gone, and those who write to it find out. The worker beside it
// lives on.
void ServerShard::lose_state() {
  dead_ = 1;
  for (Slice& s : slices_)
    for (const StateSpan& state : s.shared->state()) std::ranges::fill(state.bytes, std::byte{0xFF});
  for (const Address& a : writers_)
    parts_.mail->post(
        a.rank, {.kind = lost, .box = static_cast<std::uint16_t>(a.box), .key = static_cast<std::uint32_t>(first_)});
}

}  // namespace echelon::exchanges
