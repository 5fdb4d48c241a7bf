// What is said of a model: counts and work that can be worked out by hand, and memory that is really used.
#include "models/describe.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "graph/program.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/says.h"

namespace echelon::models {
namespace {

using test::says;

TEST(Describe, ALayersOutputIsWhatOthersReadOfIt) {
  const InputSpec sequences{.inputs = {{"image", f32({9, 5})}}, .target = {"label", i32({})}, .classes = 4};
  const auto output_of = [&](const std::string& cell) {
    const Options options = parse_toml("layers = [{ type = 'lstm', name = 'cell', hidden = 3, " + cell +
                                           " }, { type = 'flatten' }, { type = 'linear', out = 4 }]",
                                       "r.toml");
    for (const LayerRow& row : describe(*make_model("layers", sequences, options), 8).layers)
      if (row.layer == "cell") return row.output;
    return Shape{};
  };
  EXPECT_EQ(output_of("layers = 2"), (Shape{9, 3}));
  EXPECT_EQ(output_of("output = 'last'"), (Shape{3}));
  EXPECT_EQ(output_of("bidirectional = true"), (Shape{9, 6}));
  EXPECT_EQ(output_of("bidirectional = true, output = 'last'"), (Shape{6}));
}

TEST(Describe, LenetByHand) {
  const auto model = make_model("lenet5", find_model("lenet5").usual_inputs());
  const Description d = describe(*model, 8);
  EXPECT_EQ(d.weights, 61706);
  EXPECT_EQ(d.statistics, 0);
  auto row = [&](const std::string& name) {
    for (const LayerRow& r : d.layers)
      if (r.layer == name) return r;
    ADD_FAILURE() << name;
    return LayerRow{};
  };
  EXPECT_EQ(row("conv1").weights, 6 * 25 + 6);
  EXPECT_EQ(row("conv1").output, (Shape{6, 28, 28}));
  EXPECT_NEAR(row("conv1").flops, 2.0 * 25 * 6 * 28 * 28, 6 * 28 * 28);
  EXPECT_EQ(row("conv2").output, (Shape{16, 10, 10}));
  EXPECT_NEAR(row("conv2").flops, 2.0 * 150 * 16 * 10 * 10, 16 * 10 * 10);
  EXPECT_EQ(row("fc1").weights, 400 * 120 + 120);
  EXPECT_NEAR(row("fc1").flops, 2.0 * 400 * 120, 120);
  EXPECT_GT(d.training_flops, 2.5 * d.forward_flops);
  EXPECT_LT(d.training_flops, 3.5 * d.forward_flops);
  std::int64_t sum = 0;
  for (const LayerRow& r : d.layers) sum += r.weights;
  EXPECT_EQ(sum, d.weights);
}

TEST(Describe, EveryLayersWeightsAddUp) {
  for (const char* name : {"resnet18", "gpt", "lstm", "densenet40", "gan", "char_gru", "conv_autoencoder"}) {
    const auto model = make_model(name, find_model(name).usual_inputs());
    const Description d = describe(*model, 2);
    std::int64_t sum = 0;
    for (const LayerRow& r : d.layers) sum += r.weights;
    EXPECT_EQ(sum, d.weights) << name;
    EXPECT_EQ(d.phases.size(), name == std::string("gan") ? 2u : 1u);
  }
}

TEST(Describe, LayersSayWhatTheyRead) {
  const auto edges = [](const char* name) { return describe(*make_model(name, find_model(name).usual_inputs()), 2); };
  const Description chain = edges("lenet5");
  for (std::size_t i = 1; i + 1 < chain.layers.size(); ++i)
    EXPECT_EQ(chain.layers[i].from, std::vector<std::size_t>{i - 1}) << chain.layers[i].layer;
  EXPECT_TRUE(chain.layers[0].from.empty());
  int skips = 0;  // a residual block adds what came into it
  const Description residual = edges("resnet18");
  for (std::size_t i = 0; i < residual.layers.size(); ++i) {
    for (const std::size_t from : residual.layers[i].from) EXPECT_NE(from, i);
    skips += residual.layers[i].from.size() > 1;
  }
  EXPECT_EQ(skips, 8);  // two blocks in each of four stages
}

TEST(Describe, MemoryIsThePlansAndGrowsWithTheBatch) {
  const auto model = make_model("lenet5", find_model("lenet5").usual_inputs());
  const Description d = describe(*model, 16);
  const Plan plan = compile(std::move(model->training(16)[0].graph));
  EXPECT_EQ(d.phases[0].arena, plan.memory.arena_bytes);
  EXPECT_LT(d.phases[0].arena, d.phases[0].without_reuse);
  EXPECT_EQ(d.step_bytes, d.phases[0].arena + d.parameter_bytes + d.contribution_bytes);
  EXPECT_GE(d.parameter_bytes, 61706 * sizeof(float));
  EXPECT_GT(describe(*model, 32).phases[0].arena, d.phases[0].arena);
}

TEST(Describe, SaysWhichLayersAreInSlices) {
  const InputSpec text{.inputs = {{"tokens", i32({6})}}, .target = {"targets", i32({6})}, .classes = 11};
  const std::string options = "width = 8\nheads = 2\nlayers = 1";
  const Description whole = describe(*make_model("gpt", text, parse_toml(options, "test")), 4);
  const Description cut = describe(*make_model("gpt", text, parse_toml(options + "\nslices = 2", "test")), 4);
  EXPECT_EQ(cut.weights, whole.weights);
  EXPECT_EQ(cut.forward_flops, whole.forward_flops);
  for (const LayerRow& row : cut.layers) {
    const bool is_whole = row.layer.find("norm") != std::string::npos || row.layer.ends_with("positions") ||
                          row.layer.ends_with("add") || row.layer.ends_with("add2") || row.layer == "pos";
    EXPECT_EQ(row.slices, is_whole ? 1 : 2) << row.layer << " " << row.ops;
  }
  EXPECT_NE(to_text(cut).find("2 slices: linear, tree_sum"), std::string::npos) << to_text(cut);
}

TEST(Describe, TextAndJsonSayTheSame) {
  const auto model = make_model("resnet20", find_model("resnet20").usual_inputs());
  const Description d = describe(*model, 4);
  const std::string text = to_text(d);
  for (const std::string& part : {std::string("layer1.0.conv1"), std::string("[16, 32, 32]"), std::string("269722"),
                                  std::to_string(d.step_bytes), std::string("classify")})
    EXPECT_TRUE(says(text, part));
  const Json json = parse_json(to_json(d), "json");
  EXPECT_EQ(json["weights"], 269722);
  EXPECT_EQ(json["layers"].size(), d.layers.size());
  EXPECT_EQ(json["step_bytes"], d.step_bytes);
  EXPECT_EQ(json["phases"][0]["arena_bytes"], d.phases[0].arena);
}

}  // namespace
}  // namespace echelon::models
