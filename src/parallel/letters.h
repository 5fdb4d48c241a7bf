#pragma once
// How letters (world/mail.h) are waited for. A worker that needs one waits as long as a collective would, and says as
// much meanwhile (collective/patience.h): at growing intervals who is waited for, and after the same limit TooLate. A
// task that serves others (a server, the office) waits as long as the job lives.

#include <exception>
#include <functional>
#include <limits>
#include <string_view>

#include "collective/patience.h"
#include "parallel/crew.h"
#include "world/mail.h"

namespace echelon {

class LetterPatience {
 public:
  // Both must outlive it. One task uses it.
  LetterPatience(Crew& crew, Mail& mail);

  // The next letter of the box. `what` it brings is for messages: "with a server's answer". `whom`: the rank that is
  // waited for, as far as one can tell; -1 if one cannot. Throws TooLate, PeerLost, and Failure if the mail is closed.
  void take(int box, Letter& letter, std::string_view what, const std::function<Rank()>& whom);
  // The same for what may well take hours: it is said, but there is no limit.
  void take_any_time(int box, Letter& letter, std::string_view what, const std::function<Rank()>& whom);

 private:
  void take(GroupPatience& patience, int box, Letter& letter, std::string_view what, const std::function<Rank()>& whom);

  World& world_;
  Mail& mail_;
  GroupPatience patience_, endless_;
};

// All that a task does which handles the letters of a box, one by one, until it is shut. What goes wrong would stay in
// the task while everybody waits for its letters, so it is told to all.
template <typename Handle>
void serve_letters(World& world, Mail& mail, int box, const Handle& handle) {
  try {
    for (Letter letter; mail.take(box, letter, std::numeric_limits<double>::infinity());) handle(letter);
  } catch (const std::exception& failure) {
    world.give_up(failure.what());
  }
}

}  // namespace echelon
