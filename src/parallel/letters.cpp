#include "parallel/letters.h"

#include "base/error.h"

namespace echelon {

namespace {

constexpr double a_moment = 1e-3;  // seconds: too early for a deadline, which is never that exact

PatienceOptions options_of(Crew& crew) {
  return crew.world().size() > 1 ? crew.group().patience().options() : PatienceOptions{};
}

PatienceOptions without_limit(PatienceOptions options) {
  options.limit = std::numeric_limits<double>::infinity();
  return options;
}

// Patience knows how to wait where others arrive: here a letter does.
class Delivery : public SharedBarrier {
 public:
  Delivery(World& world, Mail& mail, int box, Letter& letter, std::string_view what)
      : world_(world), mail_(mail), box_(box), letter_(letter), what_(what) {}
  bool wait(double deadline) override {
    if (mail_.take(box_, letter_, deadline)) return true;
    if (world_.now() < deadline - a_moment)
      fail("the mail was closed while rank {} waited for one {}", world_.rank(), what_);
    return false;
  }

 private:
  World& world_;
  Mail& mail_;
  int box_;
  Letter& letter_;
  std::string_view what_;
};

}  // namespace

LetterPatience::LetterPatience(Crew& crew, Mail& mail)
    : world_(crew.world()),
      mail_(mail),
      patience_(world_, options_of(crew)),
      endless_(world_, without_limit(options_of(crew))) {}

void LetterPatience::take(int box, Letter& letter, std::string_view what, const std::function<Rank()>& whom) {
  take(patience_, box, letter, what, whom);
}

void LetterPatience::take_any_time(int box, Letter& letter, std::string_view what, const std::function<Rank()>& whom) {
  take(endless_, box, letter, what, whom);
}

void LetterPatience::take(GroupPatience& patience, int box, Letter& letter, std::string_view what,
                          const std::function<Rank()>& whom) {
  if (mail_.try_take(box, letter)) return;
  Delivery delivery(world_, mail_, box, letter, what);
  patience.begin({}, what);
  patience.wait(delivery, [&] { return whom() == world_.rank() ? -1 : whom(); });  // its own tasks wait for others
  patience.end();
}

}  // namespace echelon
