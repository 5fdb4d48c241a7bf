#include "run/health/diagnosis.h"

#include <gtest/gtest.h>

#include <functional>

namespace echelon {
namespace {

// Three ranks that train, all well, at two moments a second apart; `at` changes what a rank looks like at the second.
struct Looks {
  std::vector<RankLook> before, now;

  Looks() {
    for (int r = 0; r < 3; ++r) {
      RankLook l{.ring = {.rank = r, .ranks = 3, .process = 100 + r, .process_began = 5, .host = "h"},
                 .process = {.exists = true, .state = 'R', .began = 5}};
      l.ring.began = 900, l.ring.stepped = 999, l.ring.step = 100, l.ring.batches = 100;
      l.ring.times = {.input = 1, .compute = 80, .exchange = 10, .waiting = 5};
      l.ring.activity = "backward of conv2";
      before.push_back(l);
      l.ring.stepped = 1000, l.ring.step = 110, l.ring.batches = 110;
      l.ring.times = {.input = 1.05, .compute = 80.8, .exchange = 10.1, .waiting = 5.05};
      now.push_back(l);
    }
  }
  // Nobody has done a step since the first look, and it has been long.
  Looks& stuck() {
    for (std::size_t r = 0; r < 3; ++r) {
      now[r].ring = before[r].ring;
      now[r].ring.activity = "the exchange of gradients";
      now[r].ring.waiting_for = 1;
    }
    now[1].ring.waiting_for = -1;
    return *this;
  }
  Diagnosis found(double time = 1000.1) const { return diagnose(before, now, 1, time); }
};

TEST(Diagnosis, FindsNothingWhereNothingIs) {
  EXPECT_EQ(Looks().found().cause, Cause::none);
  EXPECT_EQ(Looks().found().text(), "nothing is wrong");
}

TEST(Diagnosis, TellsTheCauses) {
  struct Case {
    Cause cause;
    std::function<void(Looks&)> change;
    double time = 1000.1;
  };
  const std::vector<Case> cases{
      {Cause::died, [](Looks& l) { l.now[1].process.exists = false; }},
      {Cause::died, [](Looks& l) { l.now[1].process.began = 6; }},
      {Cause::stopped, [](Looks& l) { l.now[1].process.state = 'T'; }},
      {Cause::slow_disk, [](Looks& l) { l.now[1].ring.saving_since = 990; }},
      {Cause::input_bound, [](Looks& l) { l.now[1].ring.times.input += 0.6; }},
      {Cause::slow,
       [](Looks& l) {
         for (const std::size_t r : {0, 2}) l.now[r].ring.times.compute -= 0.6, l.now[r].ring.times.waiting += 0.6;
       }},
      {Cause::other_program,
       [](Looks& l) {
         for (const std::size_t r : {0, 2}) l.now[r].ring.times.compute -= 0.6, l.now[r].ring.times.waiting += 0.6;
         l.now[1].process.waited_for_core += 0.5;
       }},
      {Cause::input_bound, [](Looks& l) { l.stuck().now[1].ring.activity = EventRing::reading; }, 1010},
      {Cause::slow_disk, [](Looks& l) { l.stuck().now[1].process.state = 'D', l.now[1].ring.activity = "x"; }, 1010},
      {Cause::slow, [](Looks& l) { l.stuck().now[1].ring.activity = "forward of fc1"; }, 1010},
      {Cause::other_program,
       [](Looks& l) {
         l.stuck().now[1].ring.activity = "forward of fc1";
         l.now[1].process.waited_for_core += 0.5;
       },
       1010},
      {Cause::slow_link, [](Looks& l) { l.stuck(); }, 1010},
      {Cause::deadlock, [](Looks& l) { l.stuck().now[1].ring.waiting_for = 0; }, 1010},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Looks looks;
    cases[i].change(looks);
    const Diagnosis found = looks.found(cases[i].time);
    EXPECT_EQ(to_string(found.cause), to_string(cases[i].cause)) << "case " << i;
    if (found.cause != Cause::deadlock) {
      EXPECT_EQ(found.rank, 1) << "case " << i;
    }
    EXPECT_NE(found.text().find(to_string(found.cause)), std::string::npos);
  }
}

TEST(Diagnosis, SaysNothingOfStandingStillForAReason) {
  for (const std::string_view activity : calm_activities) {
    Looks looks;
    looks.stuck().now[0].ring.activity = activity;
    EXPECT_EQ(looks.found(1100).cause, Cause::none) << activity;
  }
  Looks beginning;
  beginning.stuck();
  for (RankLook& l : beginning.now) l.ring.batches = 1;
  EXPECT_EQ(beginning.found(1010).cause, Cause::none) << "the first steps take longer";
}

TEST(Diagnosis, CallsTheLinkSlowIfAllAreAtExchanging) {
  Looks looks;
  for (RankLook& l : looks.now) l.ring.times.compute -= 0.7, l.ring.times.exchange += 0.7;
  EXPECT_EQ(looks.found().cause, Cause::slow_link);
  looks.now[2].process.waited_for_core += 0.5;
  EXPECT_EQ(looks.found().cause, Cause::other_program);
  EXPECT_EQ(looks.found().rank, 2);
}

TEST(Diagnosis, SaysNothingOfRanksThatHaveEndedOrAreElsewhere) {
  Looks looks;
  looks.now[1].process.exists = false;
  looks.now[1].ring.ended = "end";
  EXPECT_EQ(looks.found().cause, Cause::none);
  looks.now[1].ring.ended = "";
  looks.now[1].here = false;
  EXPECT_EQ(looks.found().cause, Cause::none);
}

TEST(Diagnosis, NamesTheOperationAndThePeer) {
  RingView ring{.step = 41};
  ring.activity = "backward of conv2";
  ring.events = {{1, 40, -1, "step done"}, {2, 41, 3, "sends all-reduce 7, part 2: 64 bytes"}, {3, 41, -1, "x"}};
  EXPECT_EQ(last_words(ring), "in backward of conv2, step 42, last with rank 3 (sends all-reduce 7, part 2: 64 bytes)");
}

}  // namespace
}  // namespace echelon
