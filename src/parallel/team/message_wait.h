#pragma once
// How a rank waits for messages (world/mailbox/mailbox.h). A worker that needs one waits as a collective does
// (collective/wait_policy.h): it reports at growing intervals for which rank it waits, and throws TooLate after the
// same limit. A task that serves others (a server, the scheduler) waits as long as the job lives.

#include <exception>
#include <functional>
#include <limits>
#include <string_view>

#include "collective/wait_policy.h"
#include "parallel/team/team.h"
#include "world/mailbox/mailbox.h"

namespace echelon {

class MessageWait {
 public:
  // Both must outlive it. One task uses it.
  MessageWait(Team& team, Mailbox& mailbox);

  // The next message of the tag. `what` it brings is for messages: "with a server's answer". `whom`: the rank that is
  // waited for, as far as one can tell; -1 if one cannot. Throws TooLate, PeerLost, and Failure if the mailbox is
  // closed.
  void take(int tag, Message& message, std::string_view what, const std::function<Rank()>& whom);
  // The same without a limit, for what may take hours. It still reports.
  void take_any_time(int tag, Message& message, std::string_view what, const std::function<Rank()>& whom);

 private:
  void take(WaitPolicy& wait_policy, int tag, Message& message, std::string_view what,
            const std::function<Rank()>& whom);

  World& world_;
  Mailbox& mailbox_;
  WaitPolicy wait_policy_, endless_;
};

// The body of a task that handles the messages of a tag, one by one, until the tag is shut. A failure would stay in the
// task while everybody waits for its messages, so it aborts the rank.
template <typename Handle>
void serve_messages(World& world, Mailbox& mailbox, int tag, const Handle& handle) {
  try {
    for (Message message; mailbox.take(tag, message, std::numeric_limits<double>::infinity());) handle(message);
  } catch (const std::exception& failure) {
    world.abort(failure.what(), kind_of(failure));
  }
}

}  // namespace echelon
