// A prediction that is wrong says which operation or link was, and the profile learns from it.

#include "foresight/blame.h"

#include <gtest/gtest.h>

#include "foresight/outcomes.h"

namespace echelon::foresight {

namespace {

// Two ranks with a step of 10 ms: four micro-batches of conv (1 ms) and fc (1 ms), and 2 ms of sums.
Prediction predicted_step() {
  Prediction p{.workers = 2, .seconds = 10e-3};
  for (int r = 0; r < 2; ++r) {
    RankPrediction rank{.compute = 8e-3, .exchange = 2e-3};
    rank.runs = 4;
    rank.operations = {{"conv1 conv2d", 1e-3}, {"fc matmul", 1e-3}};
    rank.send(1 - r, 4e6);
    p.ranks.push_back(rank);
  }
  p.busy = 2;
  p.measured = 1;
  p.profiled = {{"conv1 conv2d", {{"conv2d", "small"}}}, {"fc matmul", {{"matmul", "large"}}}};
  return p;
}

std::vector<RankOutcome> as_predicted(const Prediction& p) {
  std::vector<RankOutcome> ranks;
  for (const RankPrediction& r : p.ranks)
    ranks.push_back({.compute = r.compute, .exchange = r.exchange, .waits = r.waits, .operations = r.operations});
  return ranks;
}

TEST(Blame, SaysNothingOfARunThatWasAsPredicted) {
  const Prediction p = predicted_step();
  EXPECT_EQ(blame(p, 11e-3, as_predicted(p)), "");
}

TEST(Blame, NamesTheOperationAndTheRank) {
  const Prediction p = predicted_step();
  std::vector<RankOutcome> ranks = as_predicted(p);
  ranks[1].operations["fc matmul"] = 4e-3, ranks[1].compute += 12e-3;
  const std::string text = blame(p, 22e-3, ranks);
  EXPECT_NE(text.find("fc matmul on rank 1 took 16 ms instead of 4 ms"), std::string::npos) << text;
  EXPECT_EQ(text.find("conv1"), std::string::npos) << text;
}

TEST(Blame, NamesTheLinkAndWhatPassesIt) {
  const Prediction p = predicted_step();
  std::vector<RankOutcome> ranks = as_predicted(p);
  ranks[0].waits[1] = 9e-3;
  const std::string text = blame(p, 19e-3, ranks);
  EXPECT_NE(text.find("the wait of rank 0 for rank 1, whose link brings it 3.8"), std::string::npos) << text;
  EXPECT_NE(text.find("a step, took 9 ms instead of 0 ms"), std::string::npos) << text;
}

TEST(Blame, NamesWhatWasQuickerWhereTheStepWas) {
  const Prediction p = predicted_step();
  std::vector<RankOutcome> ranks = as_predicted(p);
  for (RankOutcome& r : ranks) r.operations["conv1 conv2d"] = 0.1e-3, r.compute -= 3.6e-3;
  const std::string text = blame(p, 6.4e-3, ranks);
  EXPECT_NE(text.find("conv1 conv2d on rank 0 took 0.4 ms instead of 4 ms"), std::string::npos) << text;
}

TEST(Refit, GivesAnOperationTheCostThatARunHasShown) {
  Profile profile;
  profile.ops.set("conv2d", "small", {.seconds = {0.8e-3, 1e-3}, .flops = 1, .bytes = 1});
  profile.ops.set("matmul", "large", {.seconds = {0.9e-3, 1e-3}, .flops = 1, .bytes = 1});
  const Prediction p = predicted_step();
  std::vector<RankOutcome> ranks = as_predicted(p);
  EXPECT_FALSE(refit(profile, p, ranks));
  for (RankOutcome& r : ranks) r.operations["fc matmul"] = 3e-3;
  ranks[0].operations["conv1 conv2d"] = 5e-3;  // of one rank only: it was disturbed
  EXPECT_TRUE(refit(profile, p, ranks));
  EXPECT_NEAR(profile.ops.families().at("matmul").at("large").seconds.together, 3e-3, 1e-9);
  EXPECT_NEAR(profile.ops.families().at("matmul").at("large").seconds.alone, 0.9e-3, 1e-9);  // two cores were busy
  EXPECT_NEAR(profile.ops.families().at("conv2d").at("small").seconds.together, 1e-3, 1e-9);
}

TEST(Refit, LeavesAloneWhatOnlyACorrectionMadeWrong) {
  Profile profile;
  profile.ops.set("matmul", "large", {.seconds = {0.9e-3, 1e-3}, .flops = 1, .bytes = 1});
  Prediction p = predicted_step();
  const std::vector<RankOutcome> ranks = as_predicted(p);
  correct(p, 1.6);  // from runs that waited for something else: the operations took what the profile says
  EXPECT_FALSE(refit(profile, p, ranks));
}

}  // namespace

}  // namespace echelon::foresight
