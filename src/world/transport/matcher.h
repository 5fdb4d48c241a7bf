#pragma once
// Where receives and messages meet. On one channel from one peer, the n-th message belongs to the n-th receive;
// whichever comes first waits in the channel's queue: a receive as `pending`, a message that nobody has asked for yet
// as `unexpected`. Never both kinds at once.
//
//   Receive  the transport's operation, with `next` and `previous` (world/intrusive_list.h)
//   Arrival  what the transport keeps of an unexpected message; its memory (say, a vector's) is used again
//
// The queues live where the transport looks up its channels; the matcher owns the unexpected messages in them, so they
// must not be used without it. Not thread-safe: the transport locks.

#include <cstddef>

#include "world/intrusive_list.h"
#include "world/pool.h"

namespace echelon {

template <typename Receive, typename Arrival>
class Matcher {
 public:
  struct Unexpected : Arrival {
    Unexpected *next = nullptr, *previous = nullptr;
  };
  struct Queue {
    IntrusiveList<Receive> pending;
    IntrusiveList<Unexpected> unexpected;
  };

  // A receive begins. Its message, if that is here already: use it, then call `done_with`. Null: the receive waits in
  // the queue, from which the transport may remove it.
  Unexpected* receive(Queue& queue, Receive& receive) {
    Unexpected* const message = queue.unexpected.pop_front();
    if (!message) queue.pending.push_back(receive);
    return message;
  }
  void done_with(Unexpected& message) { idle_.give_back(message); }

  // A message arrives. The receive that it belongs to, taken out of the queue; null: `keep` it.
  Receive* arrive(Queue& queue) { return queue.pending.pop_front(); }
  // A place for it at the end of the queue, with what an earlier message left there.
  Arrival& keep(Queue& queue) {
    Unexpected& message = idle_.take();
    queue.unexpected.push_back(message);
    return message;
  }

  // Makes room for `count` unexpected messages, each prepared by `prepare(Arrival&)`.
  template <typename Prepare>
  void reserve(std::size_t count, const Prepare& prepare) {
    IntrusiveList<Unexpected> made;
    while (idle_.size() < count) {
      Unexpected& message = idle_.take();
      prepare(static_cast<Arrival&>(message));
      made.push_back(message);
    }
    while (Unexpected* const message = made.pop_front()) idle_.give_back(*message);
  }

 private:
  Pool<Unexpected> idle_;
};

}  // namespace echelon
