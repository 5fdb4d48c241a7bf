#include "track/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/text.h"
#include "tests/support/hand_clock.h"
#include "tests/support/says.h"
#include "world/launch.h"

namespace echelon {
namespace {

using test::says;

ProgressState half_way() {
  return {.step = 420,
          .steps = 1000,
          .epoch = 2,
          .epochs = 5,
          .loss = 0.1234,
          .accuracy = 0.961,
          .samples_per_s = 12345,
          .peak_share = 0.71,
          .seconds_left = 72};
}

ProgressState at(std::int64_t step, std::int64_t steps) {
  ProgressState s;
  s.step = step, s.steps = steps;
  return s;
}

TEST(ProgressBar, SaysEverythingWhereThereIsRoom) {
  const std::string line = progress_bar(half_way(), 120);
  for (const char* part :
       {"epoch 2/5", " 42 %", "loss 0.1234", "acc 96.10 %", "12.3 k/s", "71 % of peak", "1 m 12 s left"})
    EXPECT_TRUE(says(line, part));
}

TEST(ProgressBar, NeverExceedsItsColumns) {
  for (int columns = 1; columns <= 200; ++columns)
    for (const auto& state : {half_way(), at(0, 0), at(5, 0), at(7, 7), at(1'000'000'000, 2'000'000'000)})
      EXPECT_LE(display_width(progress_bar(state, columns)), columns);
}

TEST(ProgressBar, DropsTheLeastImportantFirst) {
  const std::string line = progress_bar(half_way(), 60);
  EXPECT_TRUE(says(line, "loss"));
  EXPECT_TRUE(says(line, "left"));
  EXPECT_EQ(line.find("peak"), std::string::npos);
}

TEST(ProgressBar, TellsTheTruthAboutTheEnds) {
  EXPECT_TRUE(says(progress_bar(at(0, 1000), 40), "  0 %"));
  EXPECT_TRUE(says(progress_bar(at(999, 1000), 40), " 99 %"));  // not done is not 100 %
  EXPECT_TRUE(says(progress_bar(at(1000, 1000), 40), "100 %"));
  EXPECT_EQ(progress_bar(at(1000, 1000), 40).find("┄"), std::string::npos);
  ProgressState nan = at(1, 2);
  nan.loss = std::nan("");
  EXPECT_TRUE(says(progress_bar(nan, 80), "loss nan"));
}

TEST(ProgressText, IsAWholeSentence) {
  EXPECT_EQ(
      progress_text(half_way()),
      "step 420/1000 (42 %), epoch 2/5, loss 0.1234, accuracy 96.10 %, 12.3 k samples/s, 71 % of peak, 1 m 12 s left");
  EXPECT_EQ(progress_text(at(3, 0)), "step 3");
}

TEST(Eta, IsExactForASteadyPace) {
  Eta eta;
  for (int step = 0; step <= 500; ++step) eta.add(50 + step * 0.02, step);
  EXPECT_NEAR(*eta.seconds_left(1000), 10, 0.01);
}

TEST(Eta, DoesNotGuess) {
  Eta eta;
  EXPECT_FALSE(eta.seconds_left(100));
  eta.add(0, 0);
  eta.add(0.1, 1);
  EXPECT_FALSE(eta.seconds_left(100));  // a tenth of a second says nothing
  eta.add(60, 2);
  EXPECT_FALSE(eta.seconds_left(100));  // nor does one slow step
  EXPECT_FALSE(eta.seconds_left(0));    // and an endless training has no end
}

// Epochs of 200 steps of 20 ms with a pause of a second after each: the pauses belong to the time that is left.
TEST(Eta, KnowsThatPausesComeAgain) {
  Eta eta;
  const int steps = 4000;
  std::vector<double> times{0};
  for (int i = 1; i <= steps; ++i) times.push_back(times.back() + 0.02 + (i % 200 == 0 ? 1.0 : 0.0));
  for (int i = 0; i <= steps; ++i) {
    eta.add(times[i], i);
    if (i >= steps / 5 && i < steps * 9 / 10) {
      const double truth = times[steps] - times[i];
      EXPECT_NEAR(*eta.seconds_left(steps), truth, truth * 0.15) << i;
    }
  }
}

TEST(Eta, FollowsAChangeOfPaceAndStartsAfreshWhenResumed) {
  Eta eta;
  double now = 0;
  std::int64_t step = 5000;  // resumed here: the steps before took no time of ours
  for (int i = 0; i < 1000; ++i) eta.add(now += 0.01, ++step);
  for (int i = 0; i < 1000; ++i) eta.add(now += 0.05, ++step);
  EXPECT_NEAR(*eta.seconds_left(8000), 50, 5);
}

TEST(Progress, RedrawsOneLineAtMostTenTimesASecond) {
  std::ostringstream out;
  test::HandClock clock;
  Progress progress(out, clock, {.live = true, .columns = [] { return 60; }});
  for (int i = 1; i <= 1000; ++i) {
    clock.pass(0.001);
    progress.update(at(i, 1000));
  }
  progress.finish();
  const std::string text = out.str();
  EXPECT_LE(std::ranges::count(text, '\r'), 12);
  EXPECT_GE(std::ranges::count(text, '\r'), 9);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_TRUE(says(text, "100 %"));  // the last state is shown, whenever it came
}

TEST(Progress, PlainLinesAreFewAndWhole) {
  std::ostringstream out;
  test::HandClock clock;
  Progress progress(out, clock, {.live = false});
  for (int i = 1; i <= 10'000; ++i) {
    clock.pass(0.36);  // an hour in all
    progress.update(at(i, 10'000));
  }
  progress.finish();
  const std::string text = out.str();
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_GT(std::ranges::count(text, '\n'), 50);
  EXPECT_LT(std::ranges::count(text, '\n'), 120);
  EXPECT_TRUE(text.ends_with("step 10000/10000 (100 %)\n")) << text.substr(text.size() - 80);
}

TEST(Progress, SaysLinesAboveTheBar) {
  std::ostringstream out;
  test::HandClock clock;
  Progress progress(out, clock, {.live = true, .columns = [] { return 60; }});
  progress.update(at(1, 10));
  progress.say("checkpoint could not be saved");
  const std::string text = out.str();
  const auto message = text.find("\r\033[Kcheckpoint could not be saved\n");
  ASSERT_NE(message, std::string::npos) << text;
  EXPECT_NE(text.find(" 10 %", message), std::string::npos);  // and the bar is there again below it
}

TEST(Progress, LinesOfSeveralTasksStayWhole) {
  constexpr int ranks = 4, times = 200;
  std::ostringstream out;
  test::HandClock clock;
  Progress progress(out, clock, {.live = false});
  run_in_threads(ranks, {}, [&](World& world) {
    for (int i = 0; i < times; ++i) {
      progress.say(std::string(40, static_cast<char>('a' + world.rank())));
      progress.update(at(i, times));
    }
  });
  std::istringstream lines(out.str());
  int said = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("step ")) continue;
    EXPECT_EQ(line, std::string(40, line[0]));
    ++said;
  }
  EXPECT_EQ(said, ranks * times);
}

}  // namespace
}  // namespace echelon
