#include "parallel/team/message_wait.h"

#include "base/error.h"

namespace echelon {

namespace {

constexpr double a_moment = 1e-3;  // seconds: too early for a deadline, which is never that exact

WaitOptions options_of(Team& team) {
  return team.world().size() > 1 ? team.group().wait_policy().options() : WaitOptions{};
}

WaitOptions without_limit(WaitOptions options) {
  options.limit = std::numeric_limits<double>::infinity();
  return options;
}

// Lets a WaitPolicy, which waits for ranks to arrive, wait for a message.
class Delivery : public SharedBarrier {
 public:
  Delivery(World& world, Mailbox& mailbox, int tag, Message& message, std::string_view what)
      : world_(world), mailbox_(mailbox), tag_(tag), message_(message), what_(what) {}
  bool wait(double deadline) override {
    if (mailbox_.take(tag_, message_, deadline)) return true;
    if (world_.now() < deadline - a_moment)
      fail("the mailbox was closed while rank {} waited for one {}", world_.rank(), what_);
    return false;
  }

 private:
  World& world_;
  Mailbox& mailbox_;
  int tag_;
  Message& message_;
  std::string_view what_;
};

}  // namespace

MessageWait::MessageWait(Team& team, Mailbox& mailbox)
    : world_(team.world()),
      mailbox_(mailbox),
      wait_policy_(world_, options_of(team)),
      endless_(world_, without_limit(options_of(team))) {}

void MessageWait::take(int tag, Message& message, std::string_view what, const std::function<Rank()>& whom) {
  take(wait_policy_, tag, message, what, whom);
}

void MessageWait::take_any_time(int tag, Message& message, std::string_view what, const std::function<Rank()>& whom) {
  take(endless_, tag, message, what, whom);
}

void MessageWait::take(WaitPolicy& wait_policy, int tag, Message& message, std::string_view what,
                       const std::function<Rank()>& whom) {
  if (mailbox_.try_take(tag, message)) return;
  Delivery delivery(world_, mailbox_, tag, message, what);
  wait_policy.begin({}, what);
  wait_policy.wait(delivery, [&] { return whom() == world_.rank() ? -1 : whom(); });  // its own tasks wait for others
  wait_policy.end();
}

}  // namespace echelon
