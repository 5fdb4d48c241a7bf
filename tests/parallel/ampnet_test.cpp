// AMPNet: stages that run what arrives and update by themselves, and micro-batches that differ in length.
#include "parallel/planned/ampnet_engine.h"

#include <map>

#include "tests/parallel/planned_job.h"
#include "tests/support/graph_runner.h"
#include "tests/support/says.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using namespace echelon::test;

Option recurrent_layer(const std::string& name, const std::string& output, bool bias = false) {
  Options layer = table({{"type", text("gru")},
                         {"name", text(name)},
                         {"hidden", integer(8)},
                         {"bias", Option{bias}},
                         {"output", text(output)}});
  return Option{std::make_shared<Options>(layer)};
}

Case lists(bool left_padded) {
  Option layers;
  Options out = table({{"type", text("linear")}, {"name", text("out")}, {"out", integer(5)}});
  layers.value = std::vector<Option>{recurrent_layer("gru1", "all"), recurrent_layer("gru2", "last"),
                                     Option{std::make_shared<Options>(out)}};
  return {"layers",
          table({{"layers", layers}, {"left_padded", Option{left_padded}}}),
          {.kind = data::SyntheticOptions::Kind::lists, .samples = 60, .shape = {9, 8}, .classes = 5}};
}

PlanSpec driven(int stages, int active, int updates) {
  return {.data = 1, .pipeline = stages, .schedule = "ampnet", .active = active, .updates = updates};
}

struct Ran {
  std::vector<float> left;
  std::map<std::string, double> figures;
  double seconds = 0;
};

Ran simulate_plan(const PlannedJob& job, const PlanSpec& plan, std::uint64_t seed = 3) {
  Ran ran;
  run_in_simulation(SimCluster::uniform(plan.pipeline, 1e-6, 1e9, 1e8), {.seed = seed}, [&](World& world) {
    const double began = world.now();
    const auto left = train_planned(world, job, plan, -1, world.rank() == 0 ? &ran.figures : nullptr);
    if (world.rank() == 0) ran.left = left, ran.seconds = world.now() - began;
  }).throw_if_failed();
  return ran;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float within) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], within * (1 + std::abs(b[i]))) << i;
}

TEST(Ampnet, OneMicroBatchAtATimeAndOneUpdateAStepIsExactTraining) {
  // Only the order of a sum differs: micro-batches one after the other, instead of in the tree.
  for (const Case& network : {cases()[1], lists(false)}) {
    const PlannedJob job{.network = network, .batch = 20};
    const std::vector<float> whole = train_whole(job);
    const Ran ran = simulate_plan(job, driven(2, 1, job.shards));
    expect_near(ran.left, whole, 1e-3f);
    EXPECT_EQ(ran.figures.at("updates_rank_0"), job.steps);
    EXPECT_EQ(ran.figures.at("missed_updates_rank_0"), 0);
  }
}

TEST(Ampnet, EarlyStagesMissUpdatesAndTheLastOneNone) {
  const PlannedJob job{.network = cases()[1], .shards = 6, .steps = 8};
  const Ran ran = simulate_plan(job, driven(3, 6, 1));
  EXPECT_EQ(ran.figures.at("updates_rank_0"), 48);
  EXPECT_EQ(ran.figures.at("updates_rank_2"), 48);
  EXPECT_GT(ran.figures.at("missed_updates_rank_0"), ran.figures.at("missed_updates_rank_1"));
  EXPECT_GT(ran.figures.at("missed_updates_rank_1"), 0);
  EXPECT_EQ(ran.figures.at("missed_updates_rank_2"), 0);
  EXPECT_LE(ran.figures.at("missed_updates_rank_0"), 5) << "no more than are under way besides it";
}

TEST(Ampnet, ASimulationHasTheSameResultEveryTime) {
  const PlannedJob job{.network = lists(true), .shards = 6, .steps = 6};
  EXPECT_TRUE(same_bits(simulate_plan(job, driven(2, 4, 2)).left, simulate_plan(job, driven(2, 4, 2)).left));
}

TEST(Ampnet, MicroBatchesAreAsLongAsTheirSequences) {
  // The same numbers, in less time: one sample is a micro-batch.
  PlannedJob job{.network = lists(true), .shards = 6, .steps = 6, .batch = 6};
  const Ran cut = simulate_plan(job, driven(2, 1, 6));
  job.network = lists(false);
  const Ran whole = simulate_plan(job, driven(2, 1, 6));
  expect_near(cut.left, whole.left, 1e-4f);
  EXPECT_LT(cut.seconds, 0.85 * whole.seconds);
}

TEST(Ampnet, ARowOfZerosInFrontChangesNothing) {
  const auto data = data::make_synthetic("train", lists(true).data);
  const auto model = models::make_model("layers", inputs_of(*data), lists(true).options);
  ASSERT_EQ(models::make_model("layers", inputs_of(*data), lists(false).options)->of_length(4), nullptr);
  const Graph whole = model->evaluation(1), tail = model->of_length(4)->evaluation(1);
  ModelMemory memory({&whole, &tail});
  GraphRunner a(whole, memory), b(tail, memory);
  for (int i = 0; i < 32; ++i) {
    const auto value = static_cast<float>(i % 5 - 2);
    a.input<float>("features")[static_cast<std::size_t>(40 + i)] = value;
    b.input<float>("features")[static_cast<std::size_t>(i)] = value;
  }
  a.run({.seed = 1}), b.run({.seed = 1});
  EXPECT_NE(a.output("loss")[0], 0);
  EXPECT_FLOAT_EQ(a.output("loss")[0], b.output("loss")[0]);
}

TEST(Ampnet, ANetworkWhoseAnswerZerosChangeIsRefused) {
  const auto data = data::make_synthetic("train", lists(true).data);
  const auto said = [&](std::vector<Option> layers) {
    layers.push_back(Option{
        std::make_shared<Options>(table({{"type", text("linear")}, {"name", text("out")}, {"out", integer(5)}}))});
    Option all;
    all.value = std::move(layers);
    return complaint_of([&] {
      models::make_model("layers", inputs_of(*data), table({{"layers", all}, {"left_padded", Option{true}}}));
    });
  };
  const Option flatten{std::make_shared<Options>(table({{"type", text("flatten")}}))};
  EXPECT_EQ(said({recurrent_layer("gru", "last")}), "");
  EXPECT_TRUE(says(said({recurrent_layer("gru", "last", true)}), "recurrent layers need bias = false"));
  EXPECT_TRUE(says(said({recurrent_layer("gru", "all"), flatten}), "weights for every row"));
}

TEST(Ampnet, AFrozenNetworkLeavesOutRowsToo) {
  const auto data = data::make_synthetic("train", lists(true).data);
  Options options = lists(true).options;
  Option patterns;
  patterns.value = std::vector<Option>{text("gru1.*")};
  options.items["freeze"] = patterns;
  const auto model = models::make_model("layers", inputs_of(*data), options)->of_length(4);
  ASSERT_NE(model, nullptr);
  const Graph graph = std::move(model->training(1).front().graph);
  for (std::size_t p = 0; p < graph.parameters().size(); ++p)
    EXPECT_EQ(static_cast<bool>(graph.contributions()[p]), !graph.parameters()[p].name.starts_with("gru1."))
        << graph.parameters()[p].name;
}

TEST(Ampnet, EveryWorldGetsToTheEnd) {
  const PlannedJob job{.network = lists(true), .shards = 6, .steps = 5};
  for (const WorldUnderTest& world : all_worlds())
    for (const int stages : {2, 3}) {
      const std::vector<float> left = train_planned_on(world, stages, job, driven(stages, 4, 1), 2);
      for (const float x : left) ASSERT_TRUE(std::isfinite(x)) << world.name;
    }
}

}  // namespace
}  // namespace echelon
