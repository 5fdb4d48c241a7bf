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
    if (name == "one_cycle") continue;  // rises by itself
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

// What torch.optim.lr_scheduler.OneCycleLR gives for max_lr = 0.1, total_steps = 20 and its defaults.
TEST(Schedule, OneCycleIsTorchs) {
  const double rates[] = {0.004,        0.0131671843, 0.0371671843, 0.0668328157,  0.0908328157,
                          0.1,          0.0987464006, 0.0950484632, 0.0890916178,  0.0811745654,
                          0.0716943002, 0.0611262022, 0.0500002,    0.0388741978,  0.0283060998,
                          0.0188258346, 0.0109087822, 0.0049519368, 0.00125399938, 4e-07};
  const Schedule s({.name = "one_cycle", .final = 4e-6}, 0.1, 20, hundred_steps);
  for (int step = 0; step < 20; ++step) EXPECT_NEAR(s.lr(step), rates[step], 1e-9) << step;
  EXPECT_NEAR(s.lr(100), 4e-7, 1e-12);
  const Schedule falls({.name = "one_cycle", .final = 0.5, .rise = 0}, 0.1, 20, hundred_steps);
  for (int step = 0; step < 19; ++step) EXPECT_GT(falls.lr(step), falls.lr(step + 1));
  for (int total : {1, 2, 3})  // too short to rise and fall
    EXPECT_TRUE(std::isfinite(Schedule({.name = "one_cycle"}, 0.1, total, hundred_steps).lr(0)));
}

// What torch.optim.lr_scheduler.ReduceLROnPlateau does with the same settings (mode "max").
TEST(Plateau, DropsWhereTorchDoes) {
  const double scores[] = {0.5, 0.6, 0.601, 0.6, 0.59, 0.7, 0.7, 0.7, 0.7, 0.7,
                           0.7, 0.7, 0.7,   0.7, 0.9,  0.9, 0.9, 0.9, 0.9};
  const double rates[] = {1.0,  1.0,  1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25,
                          0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2};
  const PlateauSpec spec{.drop = 0.5, .patience = 2, .threshold = 0.01, .cooldown = 1, .least = 0.2};
  Plateau plateau(spec);
  double before = 1;
  for (std::size_t i = 0; i < std::size(scores); ++i) {
    Plateau again(spec);  // as if resumed before every evaluation
    again.read(plateau.to_json());
    EXPECT_EQ(plateau.evaluated(scores[i]), rates[i] < before) << i;
    EXPECT_DOUBLE_EQ(plateau.factor(), rates[i]) << i;
    again.evaluated(scores[i]);
    EXPECT_EQ(again.to_json(), plateau.to_json());
    before = rates[i];
  }
  Plateau losses({.patience = 0});
  EXPECT_FALSE(losses.evaluated(-2));  // scores may be negative: a loss
  EXPECT_FALSE(losses.evaluated(-1.5));
  EXPECT_TRUE(losses.evaluated(-1.6));
  EXPECT_TRUE(losses.evaluated(std::nan("")));
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
