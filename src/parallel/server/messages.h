#pragma once
// What the messages between workers and servers mean. In rounds a message's `clock` is the number of the round; else it
// counts the sender's steps.

#include <cstdint>

#include "world/mailbox/mailbox.h"

namespace echelon::exchanges {

enum MessageType : std::uint16_t {
  push,  // A contribution. In rounds: `number` is its share, `second` the learning rate, as bits of a double. Else:
         // `number` is the learning rate times its share (of weights: the share), `second` the version that it
         // was computed from, with the worker's own pushes since. Of a relay's sum `second` is the sum of these
         // versions and `clock` the number of contributions in it, less one.
  push_answer,  // The same, and an answer is wanted that has seen what the sync says (Sync::must_have_seen).
  await,        // No contribution for this key, but the answer is wanted that `push_answer` would get.
  warm,         // An answer is wanted that has seen `clock` updates.
  answer,       // `clock`: how many steps of every worker it has seen, or the round that is open now; `second`: its
                // version; `number`: how many of the reader's own steps are in it.
  hand_in,      // Round `clock` is about to close: the worker hands in what it has.
  flush,  // Is answered with `flushed` when everything that came before it has been merged. No push of this worker
          // follows before all workers have met.
  flushed,
  lost,  // To a worker: this server has lost its state; `clock`: all of its chain that have (LostMembers). From a
         // worker to the first of the chain that is left: the same.
  site_change,   // Changes of weights, from the server of another site (site_mirror.h); `clock`: how far that site is;
                 // `second`: whether it was announced.
  site_barrier,  // The same server announces a change that takes long: nobody reads the key before it is there.
};

struct Address {
  Rank rank = 0;
  int tag = 0;
};

// Failure about a message that `receiver` ("a server") does not know.
[[noreturn]] void fail_unknown_type(const Message& message, const char* receiver);

}  // namespace echelon::exchanges
