// Rows between split layers on several ranks, and matrices in two dimensions: no bit changes, and less is kept.

#include "parallel/planned/plan_view.h"
#include "tests/parallel/planned_job.h"

namespace echelon {
namespace {

using namespace test;

PlannedJob rows_job(bool grid) {
  Case network = tied_gpt();
  network.options.items["heads"] = integer(4);
  network.options.items["slices"] = integer(4);
  if (grid) network.options.items["slice_linear"] = text("grid");
  return {.network = network, .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}}), .shards = 2};
}

TEST(Sequence, RowsOnSeveralRanksGiveTheBitsOfOneWorker) {
  const PlannedJob job = rows_job(false);
  const std::vector<float> whole = train_whole(job);
  for (const PlanSpec& plan :
       {PlanSpec{.data = 1, .tensor = 2, .sequence = true}, PlanSpec{.data = 1, .tensor = 4, .sequence = true},
        PlanSpec{.data = 2, .tensor = 2, .sequence = true, .zero = 3},
        PlanSpec{.data = 1, .pipeline = 2, .tensor = 2, .sequence = true, .recompute = "all"},
        PlanSpec{.data = 1, .pipeline = 2, .tensor = 2, .sequence = true, .schedule = "zero_bubble"}})
    EXPECT_TRUE(
        same_bits(train_planned_on(world_named("threads"), plan.data * plan.pipeline * plan.tensor, job, plan), whole))
        << to_string(plan);
}

TEST(Sequence, KeepsFewerActivations) {
  const PlannedJob job = rows_job(false);
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  const auto activations = [&](bool sequence) {
    return view_plan(*model, PlanLayout({.data = 1, .tensor = 4, .sequence = sequence}, job.shards), 16, 2)
        .ranks[0]
        .activations;
  };
  EXPECT_LT(activations(true), activations(false) * 9 / 10);
}

TEST(Sequence, NeedsSplitLayers) {
  PlanSpec plan{.sequence = true};
  EXPECT_EQ(refusals(plan, {.workers = 1, .layers = {"a"}}).size(), 1u);
}

TEST(Grid, AMatrixInBothDimensionsGivesTheBitsOfOneWorkerOnAnyNumberOfRanks) {
  const PlannedJob job = rows_job(true);
  const std::vector<float> whole = train_whole(job);
  EXPECT_FALSE(same_bits(whole, train_whole(rows_job(false))));  // it belongs to the recipe
  for (const int ways : {2, 4})
    EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), ways, job, {.data = 1, .tensor = ways}), whole))
        << ways;
}

}  // namespace
}  // namespace echelon
