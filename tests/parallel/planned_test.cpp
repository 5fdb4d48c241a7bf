// A model that is split over ranks is trained to the same bits as a whole one.

#include <gtest/gtest.h>

#include "tests/parallel/planned_job.h"

namespace echelon {
namespace {

using namespace test;

TEST(PlannedTraining, EveryLegalPlanOfSmallNetworksGivesTheSameBits) {
  int plans = 0;
  for (const Case& network : {cases()[0], cases()[1], cases()[2], cases()[3], tied_gpt()}) {
    PlannedJob job{.network = network, .steps = 4};
    if (network.name == "gpt") {
      job.rule = "adamw";
      job.rule_settings = table({{"clip_norm", number(0.5)}});
    }
    if (network.name == "resnet20") job.steps = 2;
    const std::vector<float> whole = train_whole(job);
    for (const int workers : {2, 3, 4, 6, 8})
      for (const PlanSpec& plan : legal_plans(facts_of(job, workers))) {
        if (plan.pipeline == 1 || plan.zero > 0 || plan.recompute != "none")
          continue;  // tests/parallel/sharded_test.cpp
        if (plan.chunks > 3 || (network.name == "resnet20" && workers > 4)) continue;  // the same once more
        ++plans;
        EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), workers, job, plan), whole))
            << network.name << ": " << to_string(plan);
      }
  }
  EXPECT_GE(plans, 60);
}

TEST(PlannedTraining, EveryWorldGivesTheSameBits) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2, .schedule = "1f1b"},
                                 PlanSpec{.data = 1, .pipeline = 4, .schedule = "zero_bubble"}})
      EXPECT_TRUE(same_bits(train_planned_on(world, 4, job, plan), whole)) << world.name << ": " << to_string(plan);
}

TEST(PlannedTraining, NormsOfWholeParametersAreThoseOfTheWholeModel) {
  for (const char* rule : {"lars", "lamb"}) {
    const PlannedJob job{.network = tied_gpt(), .rule = rule};
    EXPECT_TRUE(
        same_bits(train_planned_on(world_named("threads"), 3, job, {.data = 1, .pipeline = 3}), train_whole(job)))
        << rule;
  }
}

TEST(PlannedTraining, ACheckpointGoesThroughRank0AndBack) {
  for (const Case& network : {cases()[2], tied_gpt()}) {
    const PlannedJob job{.network = network, .rule = "adam"};
    const std::vector<float> whole = train_whole(job);
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2},
                                 PlanSpec{.data = 1, .pipeline = 2, .chunks = 2, .schedule = "interleaved"},
                                 PlanSpec{.data = 1, .pipeline = 4, .schedule = "bidirectional"}})
      EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), plan.data * plan.pipeline, job, plan, 2), whole))
          << network.name << ": " << to_string(plan);
  }
}

}  // namespace
}  // namespace echelon
