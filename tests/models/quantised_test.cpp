// Every model with few bits: which layers are taken, what is refused, and that each still learns.
#include "models/wrappers/quantised.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/says.h"

namespace echelon::models {
namespace {

using test::says;

std::unique_ptr<Model> make(const std::string& name, const std::string& quantise) {
  return make_model(name, find_model(name).usual_inputs(), parse_toml("quantise = { " + quantise + " }", "test"));
}

testing::AssertionResult says_all(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts)
    if (!says(text, part)) return says(text, part);
  return testing::AssertionSuccess();
}

std::string problems_of(const std::string& name, const std::string& quantise) {
  return test::complaint_of([&] { make(name, quantise); });
}

// The layers whose weights pass through the op.
std::set<std::string> layers_with(const Graph& graph, std::string_view op) {
  std::set<std::string> layers;
  for (const Node& node : graph.nodes())
    if (node.op->name() == op && !node.backward && graph.info(node.in[0]).source == ValueInfo::Source::parameter)
      layers.insert(node.layer);
  return layers;
}

using Layers = std::set<std::string>;

TEST(Quantised, LeavesTheEndsAloneUnlessToldOtherwise) {
  EXPECT_EQ(layers_with(make("lenet5", "scheme = \"bnn\"")->training(2)[0].graph, "binary"),
            (Layers{"conv2", "fc1", "fc2"}));
  EXPECT_EQ(layers_with(make("lenet5", "scheme = \"bnn\", ends = true")->training(2)[0].graph, "binary"),
            (Layers{"conv1", "conv2", "fc1", "fc2", "fc3"}));
  EXPECT_EQ(layers_with(make("lenet5", "scheme = \"ternary\"")->training(2)[0].graph, "ternary"),
            (Layers{"conv1", "conv2", "fc1", "fc2", "fc3"}));
}

TEST(Quantised, AllGraphsOfAModelQuantiseTheSameLayers) {
  // The GAN's generator ends elsewhere in the graph that only generates.
  const auto gan = make("gan", "scheme = \"bnn\"");
  Layers trained;
  for (const Phase& phase : gan->training(2)) trained.merge(layers_with(phase.graph, "binary"));
  const Layers drawn = layers_with(gan->prediction(2), "binary");
  EXPECT_FALSE(drawn.empty());
  for (const std::string& layer : trained)
    if (layer.starts_with("generator.")) {
      EXPECT_TRUE(drawn.contains(layer)) << layer;
    }
}

TEST(Quantised, TrainsTheSameParametersAsTheWholeModel) {
  for (const char* name : {"lenet5", "resnet20", "gpt", "gan"}) {
    const auto plain = make_model(name, find_model(name).usual_inputs());
    const auto few = make(name, "scheme = \"flexpoint\"");
    const auto a = plain->training(2), b = few->training(2);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t phase = 0; phase < a.size(); ++phase) {
      ASSERT_EQ(a[phase].graph.parameters().size(), b[phase].graph.parameters().size());
      for (std::size_t i = 0; i < a[phase].graph.parameters().size(); ++i) {
        EXPECT_EQ(a[phase].graph.parameters()[i].name, b[phase].graph.parameters()[i].name);
        EXPECT_EQ(bool(a[phase].graph.contributions()[i]), bool(b[phase].graph.contributions()[i]))
            << name << " " << a[phase].graph.parameters()[i].name;
      }
    }
  }
}

// The names of the ops that make what the signs of activations are taken of.
std::multiset<std::string> ops_before_signs(const Graph& graph) {
  std::multiset<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op->name() != "binary" || node.backward) continue;
    const ValueInfo& from = graph.info(node.in[0]);
    if (from.source == ValueInfo::Source::node)
      names.emplace(graph.nodes()[static_cast<std::size_t>(from.producer)].op->name());
  }
  return names;
}

TEST(Quantised, BatchNormStandsBeforeEverySignIfAskedFor) {
  const auto model = make("lenet5", "scheme = \"bnn\", batch_norm = true");
  using Names = std::multiset<std::string>;
  EXPECT_EQ(ops_before_signs(model->training(2)[0].graph), (Names{"batch_norm", "batch_norm", "batch_norm"}));
  const Names running{"batch_norm_inference", "batch_norm_inference", "batch_norm_inference"};
  EXPECT_EQ(ops_before_signs(model->evaluation(2)), running);
  EXPECT_EQ(ops_before_signs(model->prediction(2)), running);
  EXPECT_FALSE(ops_before_signs(make("lenet5", "scheme = \"bnn\"")->training(2)[0].graph).contains("batch_norm"));
}

TEST(Quantised, ANetworkThatHasBatchNormBeforeASignGetsNoSecondOne) {
  const Graph graph = make("resnet20", "scheme = \"bnn\", batch_norm = true")->training(2)[0].graph;
  bool any = false;
  for (const Node& node : graph.nodes())
    if (node.op->name() == "batch_norm") {
      const ValueInfo& from = graph.info(node.in[0]);
      ASSERT_EQ(from.source, ValueInfo::Source::node);
      EXPECT_NE(graph.nodes()[static_cast<std::size_t>(from.producer)].op->name(), "batch_norm") << node.layer;
      any = true;
    }
  EXPECT_TRUE(any);
}

TEST(Quantised, ABatchNormBeforeASignIsTrainedAndKeepsRunningStatistics) {
  const Graph g = make("lenet5", "scheme = \"bnn\", batch_norm = true")->training(2)[0].graph;
  Layers moved;
  for (std::size_t i = 0; i < g.parameters().size(); ++i)
    if (g.contributions()[i] && g.parameters()[i].name.starts_with("fc2.")) moved.insert(g.parameters()[i].name);
  EXPECT_EQ(moved, (Layers{"fc2.weight", "fc2.bias", "fc2.before_sign.weight", "fc2.before_sign.bias",
                           "fc2.before_sign.running_mean", "fc2.before_sign.running_var"}));
}

TEST(Quantised, NumbersOfManyBitsGiveNearlyTheWholeModelsLoss) {
  const auto plain = make_model("lenet5", find_model("lenet5").usual_inputs());
  const auto loss = [](const Model& model) {
    const Graph graph = model.evaluation(4);
    test::ModelMemory memory({&graph});
    test::GraphRunner runner(graph, memory);
    const Stream s({.seed = 2});
    auto x = runner.input<float>("image");
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = s.uniform(i);
    runner.run();
    return runner.scalar("loss");
  };
  const float whole = loss(*plain);
  EXPECT_NEAR(loss(*make("lenet5", "scheme = \"flexpoint\"")), whole, 1e-3);
  EXPECT_NEAR(loss(*make("lenet5", "scheme = \"fixed\"")), whole, 1e-2);
  EXPECT_GT(std::abs(loss(*make("lenet5", "scheme = \"flexpoint\", weights_bits = 3")) - whole), 1e-3);
}

TEST(Quantised, EveryModelOfTheZooCanBeBuiltWithEveryScheme) {
  for (const Entry& entry : zoo()) {
    if (entry.name == "layers" || entry.name.starts_with("vgg") || entry.name == "alexnet")
      continue;  // large; as lenet5
    for (const std::string& scheme : quantisation_schemes()) {
      if (scheme == "halp" && entry.name == "gan") continue;  // refused
      SCOPED_TRACE(std::string(entry.name) + " " + scheme);
      const auto model =
          make(std::string(entry.name), "scheme = \"" + scheme + (scheme == "halp" ? "\"" : "\", ends = true"));
      EXPECT_NO_THROW(model->training(1));
      EXPECT_NO_THROW(model->evaluation(1));
      EXPECT_NO_THROW(model->prediction(1));
    }
  }
}

TEST(Quantised, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(says_all(problems_of("lenet5", "weights_bits = 2"), {"quantise.scheme", "dorefa"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"dorefe\""), {"dorefa"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"dorefa\", weights_bits = 17"), {"17", "1 to 16", "32"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"bnn\", activations_bits = 2"), {"activations_bits", "1"}));
  EXPECT_TRUE(
      says_all(problems_of("lenet5", "scheme = \"ternary\", activations_bits = 8"), {"activations_bits", "only"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"dorefa\", weights_bits = 32, activations_bits = 32"),
                       {"nothing would be quantised"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"ternary\", keep_scale = true"), {"keep_scale"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"dorefa\", batch_norm = true"), {"batch_norm"}));
  EXPECT_TRUE(says_all(problems_of("lenet5", "scheme = \"bnn\", activations_bits = 32, batch_norm = true"),
                       {"batch_norm", "activations_bits"}));
  EXPECT_TRUE(says_all(problems_of("gpt", "scheme = \"bnn\", batch_norm = true"), {"batch_norm", "false"}));
  EXPECT_TRUE(says_all(problems_of("gan", "scheme = \"bnn\", batch_norm = true"), {"batch_norm", "in turn"}));
  // Its one linear layer is first and last.
  EXPECT_TRUE(says_all(problems_of("lstm", "scheme = \"dorefa\""), {"no layer", "ends = true"}));
  EXPECT_EQ(problems_of("lstm", "scheme = \"dorefa\", ends = true"), "");
}

}  // namespace
}  // namespace echelon::models
