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

// Layers spread over ranks, with everything else that a plan may say.
TEST(PlannedTraining, LegalPlansOfSlicedNetworksGiveTheSameBits) {
  int plans = 0, seen = 0;
  for (const std::size_t network : {1, 3, 4, 5}) {  // lenet5, lstm, gru, gpt
    PlannedJob job{.network = cases()[network], .rule = "momentum", .steps = 2};
    if (job.network.name == "lstm" || job.network.name == "gru") job.network.options.items["hidden"] = integer(8);
    job.network.options.items["slices"] = integer(2);
    const std::vector<float> whole = train_whole(job);
    for (const int workers : {2, 4, 8})
      for (const PlanSpec& plan : legal_plans(facts_of(job, workers))) {
        if (plan.tensor == 1 || plan.chunks > 2 || seen++ % 5 != 0) continue;
        ++plans;
        EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), workers, job, plan), whole))
            << job.network.name << ": " << to_string(plan);
      }
  }
  EXPECT_GE(plans, 40);
}

// What goes from step to step is put together from slices in the stage that reads it.
TEST(PlannedTraining, CarriedValuesOfSlicedNetworksStayInTheirStage) {
  Case network{"char_lstm", table({{"hidden", integer(8)}, {"slices", integer(2)}}), cases()[5].data};
  const PlannedJob job{.network = network, .batch = 20};  // streams: all batches are equally large
  const std::vector<float> whole = train_whole(job);
  for (const PlanSpec& plan : {PlanSpec{.data = 1, .pipeline = 2}, PlanSpec{.data = 1, .pipeline = 2, .tensor = 2},
                               PlanSpec{.data = 1, .pipeline = 4, .schedule = "zero_bubble"}})
    EXPECT_TRUE(
        same_bits(train_planned_on(world_named("threads"), plan.data * plan.ranks_of_replica(), job, plan, 2), whole))
        << to_string(plan);
}

TEST(PlannedTraining, EveryWorldGivesTheSameBits) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2, .schedule = "1f1b"},
                                 PlanSpec{.data = 1, .pipeline = 4, .schedule = "zero_bubble"}})
      EXPECT_TRUE(same_bits(train_planned_on(world, 4, job, plan), whole)) << world.name << ": " << to_string(plan);
}

TEST(PlannedTraining, ReplicasOfAStageMayBeNeighbours) {
  Case sliced = tied_gpt();
  sliced.options.items["slices"] = integer(2);
  const PlannedJob job{.network = sliced, .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  for (PlanSpec plan :
       {PlanSpec{.data = 2, .pipeline = 2}, PlanSpec{.data = 2, .pipeline = 2, .schedule = "bidirectional"},
        PlanSpec{.data = 2, .pipeline = 2, .tensor = 2}, PlanSpec{.data = 2, .pipeline = 2, .zero = 3},
        PlanSpec{.data = 3, .pipeline = 2, .zero = 1}}) {
    plan.neighbours = "replicas";
    EXPECT_TRUE(
        same_bits(train_planned_on(world_named("threads"), plan.data * plan.ranks_of_replica(), job, plan, 2), whole))
        << to_string(plan);
  }
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
