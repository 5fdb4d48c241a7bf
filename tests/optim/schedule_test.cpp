#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace echelon {
namespace {

double hundred_steps(double epochs) { return 100 * epochs; }

Schedule make(const ScheduleSpec& spec, std::int64_t total = 1000) { return Schedule(spec, 0.8, total, hundred_steps); }

TEST(Schedule, ConstantStays) {
  const Schedule s = make({});
  for (const int step : {0, 1, 999, 5000}) EXPECT_EQ(s.lr(step), 0.8);
}

TEST(Schedule, StepDropsEveryAndAt) {
  ScheduleSpec spec{.name = "step", .drop = 0.1, .every = {3, true}};
  const Schedule every = make(spec);
  for (int step = 0; step < 1000; ++step) EXPECT_DOUBLE_EQ(every.lr(step), 0.8 * std::pow(0.1, step / 300)) << step;
  spec.every = {};
  spec.at = {{500, false}, {2, true}};
  const Schedule at = make(spec);
  for (int step = 0; step < 1000; ++step)
    EXPECT_DOUBLE_EQ(at.lr(step), 0.8 * std::pow(0.1, (step >= 200) + (step >= 500))) << step;
}

TEST(Schedule, CosineAndPolynomialFallFromTheBaseToTheFinalRate) {
  const Schedule cosine = make({.name = "cosine", .final = 0.1});
  const Schedule square = make({.name = "polynomial", .final = 0.1, .power = 2});
  for (int step = 0; step <= 1000; ++step) {
    EXPECT_NEAR(cosine.lr(step), 0.8 * (0.1 + 0.9 * (1 + std::cos(M_PI * step / 1000)) / 2), 1e-12);
    EXPECT_NEAR(square.lr(step), 0.8 * (0.1 + 0.9 * std::pow(1 - step / 1000.0, 2)), 1e-12);
  }
  EXPECT_EQ(cosine.lr(0), 0.8);
  EXPECT_NEAR(cosine.lr(5000), 0.08, 1e-12);
}

TEST(Schedule, WarmUpCombinesWithEveryShape) {
  for (const std::string& name : schedule_names()) {
    ScheduleSpec spec{.name = name, .warmup = {0.5, true}, .every = {500, false}};
    const Schedule s = make(spec);
    for (int step = 0; step < 50; ++step) EXPECT_DOUBLE_EQ(s.lr(step), 0.8 * (step + 1) / 50) << name;
    EXPECT_DOUBLE_EQ(s.lr(49), 0.8);
    EXPECT_DOUBLE_EQ(s.lr(50), 0.8) << name;
    for (int step = 50; step < 1000; ++step) EXPECT_LE(s.lr(step + 1), s.lr(step));
  }
  // The shape has the rest of the run: half way between the end of the warm-up and the end, cosine is at one half.
  EXPECT_NEAR(make({.name = "cosine", .warmup = {100, false}}).lr(550), 0.4, 1e-12);
  EXPECT_EQ(make({.warmup = {5000, false}}).lr(999), 0.8);  // a warm-up longer than the run
}

TEST(Schedule, BatchGrowsBetweenEpochsUpToItsLimits) {
  using Stages = std::vector<BatchStage>;
  EXPECT_EQ(batch_stages({}, 64, 1000), (Stages{{0, 64}}));
  // 1000 samples: 16 steps an epoch at 64, 8 at 128, 4 at 256.
  EXPECT_EQ(batch_stages({2, {3, true}, 256}, 64, 1000), (Stages{{0, 64}, {48, 128}, {72, 256}}));
  EXPECT_EQ(batch_stages({4, {10, false}, 100000}, 64, 1000), (Stages{{0, 64}, {10, 256}}));  // 1024 is above an epoch
}

TEST(Schedule, ReadsItsTableAndReportsWhatMakesNoSense) {
  Options t;
  t.where = "schedule";
  t.items["name"].value = std::string("cosine");
  t.items["warmup_steps"].value = std::int64_t{100};
  t.items["final"].value = 0.1;
  auto growth = std::make_shared<Options>();
  growth->where = "schedule.growth";
  growth->items["every_epochs"].value = std::int64_t{2};
  t.items["growth"].value = growth;
  Problems fine;
  OptionReader reader(t, fine);
  const ScheduleSpec spec = read_schedule(reader);
  EXPECT_TRUE(fine.empty()) << fine.text("r");
  EXPECT_EQ(spec.name, "cosine");
  EXPECT_EQ(spec.warmup.amount, 100);
  EXPECT_EQ(spec.growth.factor, 2);

  t.items["warmup_epochs"].value = 0.5;
  t.items["drop"].value = 0.5;
  t.items["finale"].value = 0.5;
  growth->items["every_epochs"].value = 1.5;
  Problems problems;
  OptionReader again(t, problems);
  read_schedule(again);
  const std::string text = problems.text("r");
  EXPECT_EQ(problems.list().size(), 4u) << text;
  EXPECT_NE(text.find("schedule.drop has no meaning for name = \"cosine\""), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'final'"), std::string::npos) << text;
}

}  // namespace
}  // namespace echelon
