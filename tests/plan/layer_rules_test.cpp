#include "plan/layer_rules.h"

#include <gtest/gtest.h>

#include "graph/program.h"
#include "plan/legal.h"
#include "plan/mesh.h"
#include "recipe/toml.h"
#include "tests/parallel/small_networks.h"

namespace echelon {
namespace {

using namespace test;

PlanSpec read_toml_plan(const std::string& toml, Problems& problems) {
  const Options tree = parse_toml(toml, "plan.toml", {});
  OptionReader reader(tree, problems);
  return read_plan(reader);
}

PlanSpec good_toml_plan(const std::string& toml) {
  Problems problems;
  const PlanSpec plan = read_toml_plan(toml, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("plan.toml");
  return plan;
}

PlanFacts facts_of_six(int workers) {
  PlanFacts f{.workers = workers, .shards = 8, .slices = 4};
  f.layers = {"conv1", "conv2", "pool", "fc1", "fc2", "loss"};
  f.splits = {{"conv1", {"channels", "channels"}},
              {"conv2", {"channels", "channels"}},
              {"fc1", {"out", "hidden"}},
              {"fc2", {"in", "hidden"}}};
  return f;
}

std::string refused_toml(const std::string& toml, const PlanFacts& facts) {
  Problems problems;
  const PlanSpec plan = read_toml_plan(toml, problems);
  check_plan(plan, facts, {}, problems);
  return problems.empty() ? "" : problems.text("plan.toml");
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Graph sliced_graph_of(const std::string& model, Options options, const data::SyntheticOptions& data_options,
                      int slices) {
  options.items["slices"] = integer(slices);
  const auto data = data::make_synthetic("train", data_options);
  return optimise(std::move(models::make_model(model, inputs_of(*data), options)->training(4).front().graph));
}

TEST(LayerRules, TheLastRuleThatFitsCounts) {
  const PlanSpec plan = good_toml_plan("tensor = 4\n[[layer]]\nmatch = \"*\"\nways = 2\n[[layer]]\nmatch = \"fc*\"\n");
  ASSERT_EQ(plan.layers.size(), 2u);
  EXPECT_EQ(rule_of(plan.layers, "conv1")->ways, 2);
  EXPECT_EQ(rule_of(plan.layers, "fc1")->ways, 0);
}

TEST(LayerRules, WithoutTensorOnlyTheNamedLayersAreSplit) {
  const PlanSpec plan = good_toml_plan("[[layer]]\nmatch = \"fc*\"\nways = 4\n");
  EXPECT_EQ(plan.tensor, 4);
  EXPECT_EQ(rule_of(plan.layers, "conv1")->ways, 1);
  EXPECT_EQ(rule_of(plan.layers, "fc2")->ways, 4);
  EXPECT_EQ(good_toml_plan("[[layer]]\nmatch = \"fc*\"\nstage = 2\n").pipeline, 3);
}

TEST(LayerRules, EveryMistakeIsNamedWithItsCure) {
  const std::string text = refused_toml(
      "tensor = 4\npipeline = 2\n[[layer]]\nmatch = \"fc1\"\nsplit = \"in\"\n[[layer]]\nmatch = \"fc9\"\nways = 2\n"
      "[[layer]]\nmatch = \"conv*\"\nways = 3\n[[layer]]\nmatch = \"pool\"\nstage = 5\n",
      facts_of_six(8));
  for (const char* part :
       {"'fc1' is cut by \"out\"", "\"fc9\" fits no layer", "ways = 3 of 'conv*' does not divide model.slices = 4",
        "the nearest number that works is 2", "stage = 5 of 'pool'", "the nearest plan that works is"})
    EXPECT_TRUE(holds(text, part)) << part << " in\n" << text;
}

TEST(LayerRules, StagesGoUpWithTheLayers) {
  EXPECT_EQ(
      refused_toml("[[layer]]\nmatch = \"conv*\"\nstage = 0\n[[layer]]\nmatch = \"fc*\"\nstage = 1\n", facts_of_six(2)),
      "");
  EXPECT_TRUE(holds(
      refused_toml("[[layer]]\nmatch = \"conv*\"\nstage = 1\n[[layer]]\nmatch = \"fc*\"\nstage = 0\n", facts_of_six(2)),
      "in the order in which they run"));
}

TEST(LayerRules, ABatchSplitIsForTheFirstLayers) {
  const std::string fc = "tensor = 4\n[[layer]]\nmatch = \"fc*\"\n",
                    batch = "[[layer]]\nmatch = \"{}\"\nsplit = \"batch\"\n";
  EXPECT_EQ(refused_toml(fc + "[[layer]]\nmatch = \"conv*\"\nsplit = \"batch\"\n", facts_of_six(4)), "");
  EXPECT_TRUE(holds(refused_toml(fc + "[[layer]]\nmatch = \"fc2\"\nsplit = \"batch\"\n", facts_of_six(4)),
                    "the first layers have to be"));
  PlanFacts odd = facts_of_six(4);
  odd.shards = 6;
  EXPECT_TRUE(
      holds(refused_toml(fc + "[[layer]]\nmatch = \"conv*\"\nsplit = \"batch\"\n", odd), "equally many micro-batches"));
  EXPECT_TRUE(holds(refused_toml("scheme = \"a\"\n", facts_of_six(1)), "needs layers with split = \"batch\""));
}

TEST(LayerRules, WhatTheSlicesOfALayerAreIsReadFromTheGraph) {
  const auto splits = layer_splits(sliced_graph_of(
      "gpt", table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(1)}}), cases()[5].data, 2));
  std::map<std::string, int> of;
  for (const auto& [layer, split] : splits) ++of[split.split];
  for (const char* kind : {"heads", "out", "in", "vocabulary"}) EXPECT_GT(of[kind], 0) << kind;
  std::map<std::string, int> dimensions;
  for (const auto& [layer, split] : splits) ++dimensions[split.dimension];
  EXPECT_GE(dimensions["heads"], 3);  // the attention and the matrices before and after it
  EXPECT_GE(dimensions["hidden"], 2);
}

TEST(LayerRules, ActivationsFollowTheLayerTheyRead) {
  const Graph graph =
      sliced_graph_of("mlp", table({{"hidden", integers({16, 8})}, {"dropout", number(0.2)}}), cases()[0].data, 4);
  PlanSpec plan{.tensor = 4};
  plan.layers = {{.match = "*", .split = "", .ways = 2}};
  for (const auto& [layer, ways] : layer_ways(plan, graph)) EXPECT_EQ(ways, 2) << layer;
  EXPECT_TRUE(layer_ways({.tensor = 4}, graph).empty());
}

// Whatever they are called: a layer may have "slice" in its name.
TEST(LayerRules, ConvolutionsAreSplitByChannelsOrRowsAsTheirWeightsAre) {
  const std::string network =
      "layers = [{ type = 'conv2d', name = 'slice1', out = 4, kernel = 3 }, { type = 'flatten' },"
      " { type = 'linear', name = 'fc', out = 10 }]\n";
  const auto split_of_images = [&](const std::string& slice_images) {
    return layer_splits(sliced_graph_of("layers", parse_toml(network + slice_images, "model.toml", {}),
                                        {.kind = data::SyntheticOptions::Kind::images, .shape = {1, 8, 8}}, 2))
        .at("slice1")
        .split;
  };
  EXPECT_EQ(split_of_images("slice_images = 'channels'\n"), "channels");
  EXPECT_EQ(split_of_images("slice_images = 'strips'\n"), "rows");
}

TEST(Mesh, ALayoutBecomesDegrees) {
  const PlanSpec plan =
      good_toml_plan("mesh = [2, 4]\nlayout = [\"batch:rows\", \"heads:columns\", \"hidden:columns\"]\n");
  EXPECT_EQ(plan.data, 2);
  EXPECT_EQ(plan.tensor, 4);
  EXPECT_EQ(plan.dimensions, (std::vector<std::string>{"heads", "hidden"}));
  EXPECT_EQ(good_toml_plan("mesh = [2, 2]\nlayout = [\"layers:rows\", \"batch:columns\"]\n").pipeline, 2);
}

TEST(Mesh, LayersWhoseDimensionIsNotLaidOutAreNotSplit) {
  const Graph graph = sliced_graph_of(
      "gpt", table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(1)}}), cases()[5].data, 2);
  const auto ways = layer_ways(good_toml_plan("mesh = [2]\nlayout = [\"heads:rows\"]\n"), graph);
  const auto splits = layer_splits(graph);
  for (const auto& [layer, split] : splits)
    EXPECT_EQ(ways.contains(layer) ? ways.at(layer) : 2, split.dimension == "heads" ? 2 : 1) << layer;
}

TEST(Mesh, WhatCannotBeLaidOutIsRefusedWithTheReason) {
  const auto problem = [](const std::string& toml) {
    Problems problems;
    read_toml_plan(toml, problems);
    return problems.text("plan.toml");
  };
  EXPECT_TRUE(holds(problem("mesh = [2, 4]\nlayout = [\"batch:rows\"]\n"), "lays nothing along columns"));
  EXPECT_TRUE(holds(problem("mesh = [2]\nlayout = [\"batch:rows\", \"heads:rows\"]\n"),
                    "another dimension of the same tensors"));
  EXPECT_TRUE(
      holds(problem("mesh = [2, 2]\nlayout = [\"hidden:rows\", \"heads:columns\"]\n"), "one dimension of the mesh"));
  EXPECT_TRUE(holds(problem("mesh = [2]\nlayout = [\"head:rows\"]\n"), "did you mean 'heads'"));
  EXPECT_TRUE(holds(problem("mesh = [2]\nlayout = [\"batch:columns\"]\n"), "the mesh has rows"));
  EXPECT_TRUE(holds(problem("mesh = [2]\ndata = 2\nlayout = [\"batch:rows\"]\n"), "leave it out"));
  EXPECT_TRUE(holds(problem("layout = [\"batch:rows\"]\n"), "mesh"));
}

}  // namespace
}  // namespace echelon
