// State that ranks share in ranges, and activations that are computed again, change no bit and take the memory that was
// predicted.

#include "parallel/planned/plan_view.h"
#include "parallel/planned/shard_ranges.h"
#include "tests/parallel/planned_job.h"

namespace echelon {
namespace {

using namespace test;

// Every `stride`-th of the plans that share state or compute again.
std::vector<PlanSpec> some_plans(const PlanFacts& facts, std::size_t stride) {
  std::vector<PlanSpec> some;
  std::size_t seen = 0;
  for (const PlanSpec& plan : legal_plans(facts))
    if ((plan.zero > 0 || plan.recompute != "none") && plan.chunks <= 2 && seen++ % stride == 0) some.push_back(plan);
  return some;
}

TEST(ShardedState, LegalPlansOfSmallNetworksGiveTheSameBits) {
  int plans = 0;
  for (const Case& network : {cases()[0], cases()[1], cases()[2], cases()[3], tied_gpt()}) {
    PlannedJob job{.network = network};
    const bool slow = network.name == "resnet20";
    if (network.name == "gpt") {
      job.rule = "adamw";
      job.rule_settings = table({{"clip_norm", number(0.5)}});
    }
    if (slow) job.steps = 2;
    const std::vector<float> whole = train_whole(job);
    for (const int workers : {1, 2, 3, 4, 8})
      for (const PlanSpec& plan : some_plans(facts_of(job, workers), slow ? 13 : 5)) {
        if (slow && workers > 4) continue;
        ++plans;
        EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), workers, job, plan), whole))
            << network.name << ": " << to_string(plan);
      }
  }
  EXPECT_GE(plans, 60);
}

TEST(ShardedState, EveryWorldGivesTheSameBits) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    for (const PlanSpec& plan : {PlanSpec{.data = 4, .zero = 1}, PlanSpec{.data = 2, .pipeline = 2, .zero = 2},
                                 PlanSpec{.data = 4, .zero = 3, .prefetch = 3, .evaluate = "first"},
                                 PlanSpec{.data = 2, .pipeline = 2, .zero = 3, .prefetch = 0, .recompute = "sqrt"}})
      EXPECT_TRUE(same_bits(train_planned_on(world, 4, job, plan), whole)) << world.name << ": " << to_string(plan);
}

TEST(ShardedState, NormsAreThoseOfTheWholeModel) {
  for (const char* rule : {"lars", "lamb"}) {
    const PlannedJob job{.network = tied_gpt(), .rule = rule};
    const std::vector<float> whole = train_whole(job);
    for (const PlanSpec& plan :
         {PlanSpec{.data = 4, .zero = 1}, PlanSpec{.data = 4, .zero = 3}, PlanSpec{.data = 2, .pipeline = 2, .zero = 2},
          PlanSpec{.data = 2, .pipeline = 2, .schedule = "bidirectional", .zero = 1}})
      EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), 4, job, plan), whole))
          << rule << ": " << to_string(plan);
  }
}

TEST(ShardedState, ACheckpointGoesThroughRank0AndBack) {
  for (const Case& network : {cases()[2], tied_gpt()}) {
    const PlannedJob job{.network = network, .rule = "adam"};
    const std::vector<float> whole = train_whole(job);
    for (const PlanSpec& plan :
         {PlanSpec{.data = 2, .zero = 1}, PlanSpec{.data = 2, .zero = 3, .offload = "/tmp", .evaluate = "first"},
          PlanSpec{.data = 2, .pipeline = 2, .zero = 3, .recompute = "all"}})
      EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), plan.data * plan.pipeline, job, plan, 2), whole))
          << network.name << ": " << to_string(plan);
  }
}

Case larger_gpt() {
  return {"gpt", table({{"width", integer(64)}, {"heads", integer(2)}, {"layers", integer(8)}}), cases()[5].data};
}

// GeePS: what a worker has no memory for lies in a file, and parameters are fetched from it ahead of their use.
TEST(ShardedState, ParametersInFilesGiveTheSameBits) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adam", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  const auto in_files = [](PlanSpec plan, int prefetch) {
    plan.zero = 3, plan.prefetch = prefetch, plan.offload = "/tmp", plan.offloads = "all";
    return plan;
  };
  for (const char* world : {"threads", "sim"})
    for (const PlanSpec& plan : {in_files({.data = 1}, 0), in_files({.data = 1}, 2), in_files({.data = 4}, 1),
                                 in_files({.data = 2, .pipeline = 2}, 1)})
      EXPECT_TRUE(same_bits(train_planned_on(world_named(world), plan.data * plan.pipeline, job, plan, 2), whole))
          << world << ": " << to_string(plan);
}

TEST(ShardedState, AWorkerWhoseModelIsInFilesNeedsMemoryForFewLayers) {
  const PlannedJob job{.network = larger_gpt(), .rule = "adam", .shards = 16};
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  const auto first = [&](const PlanSpec& plan) { return view_plan(*model, PlanLayout(plan, 16), 2, 2).ranks[0]; };
  const RankBytes whole = first({.data = 1, .recompute = "all"});
  const RankBytes files =
      first({.data = 1, .zero = 3, .recompute = "all", .offload = "/tmp", .offloads = "all", .evaluate = "first"});
  EXPECT_EQ(files.parameters, 0U);
  EXPECT_EQ(files.state, 0U);
  EXPECT_LT(files.all() - files.activations, (whole.all() - whole.activations) / 4);
  EXPECT_GE(files.disk, whole.parameters + whole.state);
}

// What each rank of a plan counts as its own after it was made.
std::vector<RankBytes> counted(const PlannedJob& job, const PlanSpec& plan, int workers, std::int64_t slice) {
  std::vector<RankBytes> all(static_cast<std::size_t>(workers));
  world_named("threads").run(workers, [&](World& world) {
    const auto data = data::make_synthetic("train", job.network.data);
    const auto model = model_of(job, *data);
    Cores cores(1);
    Team team(world, cores, true);
    PlannedEngine engine({.model = model.get(),
                          .make_optim = [&] { return optim(job.rule, job.rule_settings); },
                          .fields = data->fields(),
                          .shards = job.shards,
                          .seed = 3,
                          .largest_shard = slice,
                          .plan = &plan},
                         team);
    all[static_cast<std::size_t>(world.rank())] = engine.bytes();
    engine.close();
  });
  return all;
}

TEST(ShardedState, PredictedBytesAreThoseThatAreAllocated) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adam"};
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  for (const PlanSpec& plan : {PlanSpec{.data = 4}, PlanSpec{.data = 4, .zero = 1}, PlanSpec{.data = 4, .zero = 2},
                               PlanSpec{.data = 4, .zero = 3}, PlanSpec{.data = 2, .pipeline = 2, .zero = 3},
                               PlanSpec{.data = 4, .zero = 1, .offload = "/tmp", .evaluate = "first"},
                               PlanSpec{.data = 4, .zero = 3, .offload = "/tmp", .offloads = "all"}}) {
    const PlanView view = view_plan(*model, PlanLayout(plan, job.shards), 5, 2);
    const std::vector<RankBytes> seen = counted(job, plan, 4, 5);
    for (std::size_t r = 0; r < seen.size(); ++r) {
      // Places for activations are made when they are first needed.
      RankBytes kept = view.ranks[r];
      kept.activations = seen[r].activations;
      EXPECT_EQ(seen[r], kept) << to_string(plan) << ", rank " << r;
    }
  }
}

TEST(ShardedState, EachStageOfZeroHoldsLess) {
  const PlannedJob job{.network = larger_gpt(), .rule = "adam", .shards = 16};
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  const auto first = [&](int zero, const std::string& again = "none") {
    return view_plan(*model, PlanLayout({.data = 4, .zero = zero, .recompute = again}, 16), 2, 2).ranks[0];
  };
  EXPECT_LT(first(1).state, first(0).state / 3);
  EXPECT_EQ(first(1).contributions, first(0).contributions);
  EXPECT_LT(first(2).contributions, first(1).contributions / 2);
  EXPECT_LT(first(3).parameters, first(2).parameters / 3);
}

TEST(ShardedState, ComputingAgainKeepsLess) {
  const PlannedJob job{.network = larger_gpt(), .shards = 8};
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  const auto activations = [&](const std::string& again, const std::string& schedule) {
    const PlanSpec plan{.data = 1, .pipeline = 2, .schedule = schedule, .recompute = again};
    return view_plan(*model, PlanLayout(plan, 8), 16, 1).ranks[0].activations;
  };
  EXPECT_LT(activations("all", "gpipe"), activations("none", "gpipe") / 2);  // 8 micro-batches are alive
  EXPECT_LT(activations("sqrt", "1f1b"), activations("none", "1f1b"));
  EXPECT_LT(activations("block*", "1f1b"), activations("none", "1f1b"));
}

TEST(ShardRanges, AreCutBetweenBlocks) {
  const std::vector<HeldParameter> parameters{
      {0, 0, 10000, true}, {1, 10000, 16, true}, {2, 10016, 5000, false}, {3, 15024, 9000, true}};
  for (const int members : {1, 2, 3, 4, 7, 50}) {
    const std::vector<Range> ranges = shard_ranges(parameters, 24032, members);
    ASSERT_EQ(ranges.size(), static_cast<std::size_t>(members));
    EXPECT_EQ(ranges.front().begin, 0u);
    EXPECT_EQ(ranges.back().end, 24032u);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (i > 0) {
        EXPECT_EQ(ranges[i].begin, ranges[i - 1].end);
      }
      const std::size_t at = ranges[i].begin;
      EXPECT_TRUE(at == 24032 || at == 10000 || at == 10016 || (at < 10000 && at % 4096 == 0) ||
                  (at >= 15024 && (at - 15024) % 4096 == 0))
          << at;
    }
  }
}

}  // namespace
}  // namespace echelon
