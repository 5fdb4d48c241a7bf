// Every model of the zoo: published counts of weights, a training step that lowers the loss, and clear refusals.
#include "models/zoo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <ostream>
#include <set>

#include "base/random.h"
#include "graph/program.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/says.h"

namespace echelon::models {
namespace {

using test::says;

InputSpec images(Shape image, std::int64_t classes) {
  return {.inputs = {{"image", f32(image)}}, .target = {"label", i32({})}, .classes = classes};
}
InputSpec text(std::int64_t length, std::int64_t vocabulary) {
  return {.inputs = {{"tokens", i32({length})}}, .target = {"targets", i32({length})}, .classes = vocabulary};
}
const InputSpec imagenet = images({3, 224, 224}, 1000), cifar = images({3, 32, 32}, 10),
                mnist = images({1, 28, 28}, 10);

std::unique_ptr<Model> make(const std::string& name, const InputSpec& inputs, const std::string& toml = "") {
  return make_model(name, inputs, parse_toml(toml, "test"));
}

std::string problems_of(const std::string& name, const InputSpec& inputs, const std::string& toml) {
  const Options options = parse_toml(toml, "r.toml");
  Problems problems;
  OptionReader reader(options, problems);
  EXPECT_EQ(make_model(name, reader, inputs), nullptr);
  return problems.text("r.toml");
}

std::int64_t weights(const Model& model) {
  ParameterTable table;
  for (const Phase& phase : model.training(1)) table.include(phase.graph);
  return table.weights();
}

TEST(Zoo, HasThePublishedCountsOfWeights) {
  struct Known {
    const char* name;
    InputSpec inputs;
    const char* options;
    std::int64_t weights;
  };
  const std::vector<Known> known = {
      {"mlp", images({784}, 10), "", 1863690},  // the benchmark's peers
      {"lenet5", mnist, "", 61706},
      {"resnet18", cifar, "", 11173962},
      {"gpt", text(128, 1024), "", 3716608},
      {"lstm", images({64, 128}, 10), "", 397834},
      {"alexnet", imagenet, "", 60965224},                    // the paper's; Caffe's bvlc_alexnet
      {"alexnet", imagenet, "variant = 'single'", 61100840},  // torchvision's, and all that follow but GoogLeNet
      {"vgg11", imagenet, "", 132863336},
      {"vgg13", imagenet, "", 133047848},
      {"vgg16", imagenet, "", 138357544},
      {"vgg19", imagenet, "", 143667240},
      {"vgg16", imagenet, "batch_norm = true", 138365992},
      {"resnet18", imagenet, "", 11689512},
      {"resnet34", imagenet, "", 21797672},
      {"resnet50", imagenet, "", 25557032},
      {"densenet121", imagenet, "", 7978856},
      {"googlenet", imagenet, "", 6998552},  // the paper's; Caffe's bvlc_googlenet
      {"googlenet", imagenet, "auxiliary = true", 13378280},
      {"resnet20", cifar, "", 269722},  // the paper's 0.27 M and 0.85 M
      {"resnet56", cifar, "", 853018},
      {"resnet20", cifar, "shortcut = 'project'", 272474},
      {"densenet40", cifar, "", 176122},
  };
  for (const Known& k : known) EXPECT_EQ(weights(*make(k.name, k.inputs, k.options)), k.weights) << k.name << k.options;
}

TEST(Zoo, TiedEmbeddingsSaveATable) {
  EXPECT_EQ(weights(*make("gpt", text(128, 1024))) - weights(*make("gpt", text(128, 1024), "tied = true")), 1024 * 256);
}

// Fills inputs with fixed noise in [0, 1), labels below `classes`.
void fill(const Model& model, const Graph& graph, test::GraphRunner& runner) {
  for (const auto& input : graph.inputs()) {
    bool carried = false;
    for (const auto& carry : graph.carries()) carried |= carry.name == input.name;
    if (carried) continue;
    const Stream noise({7, 0, 0, stream_layer(input.name.c_str())});
    std::uint64_t i = 0;
    if (graph.type(input.value).dtype == DType::i32) {
      const auto ids = static_cast<std::uint32_t>(std::max<std::int64_t>(model.inputs().classes, 2));
      for (auto& v : runner.input<std::int32_t>(input.name)) v = static_cast<std::int32_t>(noise.below(ids, i++));
    } else {
      for (float& v : runner.input<float>(input.name)) v = noise.uniform(i++);
    }
  }
}

// Each phase of a step: finite, something to learn, and a small move against the gradient lowers the loss.
void expect_learns(const Model& model, std::int64_t slice) {
  std::vector<Phase> phases = model.training(slice);
  const Graph evaluation = model.evaluation(slice), prediction = model.prediction(1);
  std::vector<const Graph*> graphs{&evaluation, &prediction};
  for (const Phase& phase : phases) graphs.push_back(&phase.graph);
  test::ModelMemory memory(graphs);
  for (const Phase& phase : phases) {
    test::GraphRunner runner(phase.graph, memory);
    fill(model, phase.graph, runner);
    const StepContext context{.seed = 1, .step = 2, .loss_scale = 1 / static_cast<float>(slice * phase.loss_terms)};
    runner.run(context);
    const double before = runner.scalar("loss") * context.loss_scale;
    ASSERT_TRUE(std::isfinite(before)) << model.name() << " " << phase.name;
    std::vector<std::size_t> trained;
    for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
      if (phase.graph.contributions()[i] && phase.graph.parameters()[i].kind == Parameter::Kind::weight)
        trained.push_back(i);
    ASSERT_FALSE(trained.empty());
    double square = 0;
    for (std::size_t i : trained)
      for (float g : memory.contribution(phase.graph.parameters()[i].name)) square += static_cast<double>(g) * g;
    ASSERT_TRUE(std::isfinite(square) && square > 0) << model.name() << " " << phase.name << ": " << square;
    // Against the gradient: 0.02 long, or less where the loss is steeply curved (small batches under batch norm).
    std::map<std::string, std::vector<float>> gradient;
    for (std::size_t i : trained) {
      const auto span = memory.contribution(phase.graph.parameters()[i].name);
      gradient[phase.graph.parameters()[i].name].assign(span.begin(), span.end());
    }
    double after = before, moved = 0;
    for (double length : {0.02, 0.005, 0.001}) {
      for (const auto& [name, g] : gradient)
        for (std::size_t k = 0; k < g.size(); ++k)
          memory.parameter(name)[k] -= static_cast<float>((length - moved) / std::sqrt(square) * g[k]);
      moved = length;
      runner.run(context);
      after = runner.scalar("loss") * context.loss_scale;
      if (after < before) break;
    }
    EXPECT_LT(after, before) << model.name() << " " << phase.name;
  }
  test::GraphRunner tested(evaluation, memory), predicted(prediction, memory);
  fill(model, evaluation, tested);
  fill(model, prediction, predicted);
  tested.run();
  predicted.run();
  EXPECT_TRUE(std::isfinite(tested.scalar("loss"))) << model.name();
  if (model.task() == Task::classify) {
    double sum = 0;
    for (float p : predicted.output("probabilities")) sum += p;
    EXPECT_NEAR(sum, 1, 1e-5) << model.name();
    EXPECT_GE(tested.scalar("correct"), 0);
    EXPECT_LE(tested.scalar("correct"), static_cast<float>(slice));
  }
}

struct Small {
  std::string name;
  InputSpec inputs;
  std::string options;
};
void PrintTo(const Small& small, std::ostream* out) { *out << small.name << " " << small.options; }
class SmallModels : public testing::TestWithParam<Small> {};
TEST_P(SmallModels, Learn) { expect_learns(*make(GetParam().name, GetParam().inputs, GetParam().options), 3); }

const InputSpec odd = images({3, 35, 37}, 7);
const InputSpec numbers = {.inputs = {{"x", f32({5})}}, .target = {"y", f32({3})}, .classes = 0};
const InputSpec rows = {
    .inputs = {{"numbers", f32({4})}, {"categories", i32({2}), {3, 5}}}, .target = {"label", i32({})}, .classes = 3};
INSTANTIATE_TEST_SUITE_P(
    Zoo, SmallModels,
    testing::Values(
        Small{"mlp", mnist, "hidden = [17, 13]\nbatch_norm = true\ndropout = 0.2"},
        Small{"mlp", numbers, "loss = 'huber'"}, Small{"mlp", numbers, "loss = 'l1'"}, Small{"mlp", numbers, ""},
        Small{"deep_stacking", mnist, "modules = 2\nhidden = 9"}, Small{"lenet5", mnist, "label_smoothing = 0.1"},
        Small{"tabular", rows, "hidden = [9]\nembedding = 2"}, Small{"tabular", numbers, "hidden = [9]"},
        Small{"lenet5", images({28, 28}, 10), ""}, Small{"alexnet", cifar, "hidden = 64"},
        Small{"alexnet", images({3, 64, 64}, 5), "hidden = 64\nvariant = 'single'"},
        Small{"vgg11", odd, "width = 8\nhidden = 32"},
        Small{"vgg13", cifar, "width = 8\nhidden = 32\nbatch_norm = true"},
        Small{"vgg16", cifar, "width = 8\nhidden = 32"}, Small{"vgg19", cifar, "width = 8\nhidden = 32"},
        Small{"googlenet", odd, "batch_norm = true"}, Small{"googlenet", images({3, 96, 96}, 5), "auxiliary = true"},
        Small{"resnet18", odd, "width = 8"}, Small{"resnet34", mnist, "width = 8"},
        Small{"resnet50", images({3, 64, 64}, 4), "width = 8"}, Small{"resnet20", cifar, ""},
        Small{"resnet20", odd, "width = 5"}, Small{"resnet56", cifar, "width = 8"},
        Small{"densenet121", images({3, 64, 64}, 4), "growth = 4"}, Small{"densenet40", odd, ""},
        Small{"lstm", images({9, 5}, 4), "hidden = 11"}, Small{"lstm", cifar, "hidden = 8\nlayers = 2\ndropout = 0.3"},
        Small{"gru", mnist, "hidden = 9"},
        Small{"gru",
              {.inputs = {{"tokens", i32({6})}}, .target = {"label", i32({})}, .classes = 3},
              "hidden = 9\nvocabulary = 3"},
        Small{"char_lstm", text(7, 13), "hidden = 10\nembedding = 5\nlayers = 2\ndropout = 0.1"},
        Small{"char_gru", text(7, 13), "hidden = 10"}, Small{"char_rnn", text(7, 13), "hidden = 10"},
        Small{"gpt", text(9, 17), "width = 12\nheads = 3\nlayers = 2\ntied = true\ndropout = 0.1"},
        Small{"gpt", text(5, 17), "width = 12\nheads = 3\nlayers = 1"}, Small{"autoencoder", mnist, "hidden = [20, 5]"},
        Small{"autoencoder", numbers, "hidden = 4\nloss = 'mse'\nnoise = 0"},
        Small{"conv_autoencoder", images({3, 8, 12}, 10), "width = 4\ncode = 6"},
        Small{"gan", mnist, "width = 4\nlatent = 6"},
        Small{"gan", images({28, 28}, 10), "kind = 'dense'\nwidth = 4\nlatent = 6\nreal_target = 1"},
        Small{"layers", mnist, "layers = [{type = 'flatten'}, {type = 'linear', out = 10}]"},
        Small{"layers", text(6, 9),
              "carried = true\nlayers = [{type = 'embedding', rows = 9, width = 4}, {type = 'gru', hidden "
              "= 5, carry = true}, "
              "{type = 'linear', out = 9}]"},
        Small{"layers", images({2, 8, 8}, 4),
              "layers = [{type = 'conv2d', out = 6, stride = 2}, {type = 'group_norm', groups = 2}, {type = "
              "'silu'}, {type = 'conv_transpose2d', out = 4, kernel = 2, stride = 2, name = 'up'}, {type = "
              "'global_avg_pool'}, {type = 'sigmoid', name = 'gate'}, {type = 'multiply', inputs = ['up', "
              "'gate']}, {type = 'global_avg_pool'}]"},
        Small{"layers", images({6, 4}, 3),
              "layers = [{type = 'gru', hidden = 5, layers = 2, bidirectional = true, name = 'read'}, {type "
              "= 'transpose', input = 'input'}, {type = 'conv1d', out = 6, padding = 1}, {type = "
              "'transpose', name = 'seen'}, {type = 'cross_attention', heads = 2, inputs = ['read', "
              "'seen']}, {type = 'layer_norm'}, {type = 'transpose'}, {type = 'global_avg_pool'}, {type = "
              "'linear', out = 3}]"},
        Small{"layers", rows,
              "outputs = ['left', 'right']\nauxiliary = ['other']\nlayers = [{type = 'embedding', rows = 5, "
              "width = 2, input = 'categories'}, {type = 'flatten', name = 'looked'}, {type = 'concat', "
              "inputs = ['numbers', 'looked']}, {type = 'block', repeat = 2, residual = true, layers = "
              "[{type = 'linear', out = 8}, {type = 'gelu'}]}, {type = 'linear', out = 1, name = 'left'}, "
              "{type = 'linear', out = 2, name = 'right'}, {type = 'linear', out = 3, name = 'other'}]"}),
    [](const auto& info) { return fmt::format("{}_{}", info.param.name, info.index); });

// What follows a module changes nothing that the module learns from.
TEST(Zoo, ModulesOfADeepStackingNetworkLearnByTheirOwnErrorAlone) {
  const auto gradient = [](int modules) {
    const auto model = make("deep_stacking", mnist, fmt::format("modules = {}\nhidden = 9", modules));
    const Phase phase = std::move(model->training(4).front());
    test::ModelMemory memory({&phase.graph});
    test::GraphRunner runner(phase.graph, memory);
    fill(*model, phase.graph, runner);
    runner.run({.seed = 1, .loss_scale = 0.25f});
    std::vector<float> of_two;
    for (const char* name : {"module1.hidden.weight", "module1.out.weight", "module2.hidden.weight"})
      if (modules > 1 || std::string_view(name).starts_with("module1"))
        for (const float g : memory.contribution(name)) of_two.push_back(g);
    return of_two;
  };
  const std::vector<float> one = gradient(1), two = gradient(2), three = gradient(3);
  EXPECT_EQ(two, three);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), two.begin()));
}

TEST(Zoo, EveryEntryIsTestedAndBuildsOnItsUsualData) {
  std::set<std::string_view> names;
  for (const Entry& entry : zoo()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.help.empty());
    if (entry.name == "layers") continue;
    const std::string name(entry.name);
    const auto model = make_model(name, entry.usual_inputs());
    EXPECT_EQ(model->name(), name);
    EXPECT_GT(weights(*model), 0);
  }
}

TEST(Tabular, GivesEveryColumnAnEmbeddingAndReadsNumbersBesideThem) {
  const auto model = make("tabular", rows, "hidden = [6]");
  // 3 values get 3 features, 5 get 5; with the 4 numbers the first layer reads 12.
  EXPECT_EQ(weights(*model), 3 * 3 + 5 * 5 + (12 * 6 + 6) + (6 * 3 + 3));
  const Graph graph = model->prediction(1);
  test::ModelMemory memory({&graph});
  test::GraphRunner runner(graph, memory);
  auto logits = [&](float number, std::int32_t first, std::int32_t second) {
    std::ranges::fill(runner.input<float>("numbers"), number);
    runner.input<std::int32_t>("categories")[0] = first;
    runner.input<std::int32_t>("categories")[1] = second;
    runner.run();
    const auto out = runner.output("logits");
    return std::vector<float>(out.begin(), out.end());
  };
  const auto before = logits(0.5f, 0, 1);
  EXPECT_NE(before, logits(0.7f, 0, 1));
  EXPECT_NE(before, logits(0.5f, 2, 1));
  EXPECT_NE(before, logits(0.5f, 0, 4));
  EXPECT_EQ(before, logits(0.5f, 0, 1));
  // A row of the second column's own table: ids of the first column do not read it.
  memory.parameter("embedding2.weight")[0] += 1;
  EXPECT_EQ(before, logits(0.5f, 0, 1));
  EXPECT_NE(logits(0.5f, 0, 0), before);
}

TEST(Tabular, RefusesIdsWhoseNumberIsNotKnown) {
  const InputSpec unknown{.inputs = {{"tokens", i32({6})}}, .target = {"label", i32({})}, .classes = 3};
  EXPECT_TRUE(says(problems_of("tabular", unknown, ""), "how many categories"));
}

TEST(Zoo, ANetworkOfOneInputRefusesDataWithSeveral) {
  for (const char* name : {"mlp", "googlenet", "gan", "autoencoder", "gpt"})
    EXPECT_TRUE(says(problems_of(name, rows, ""), "reads one input, but the data set has 2: numbers, categories"))
        << name;
}

TEST(Decoding, OneTokenAtATimeGivesTheScoresOfTheWholeWindow) {
  const std::string written =
      "layers = [{type = 'embedding', rows = 17, width = 12}, {type = 'positions'}, {type = 'block', repeat = 2, "
      "residual "
      "= true, layers = [{type = 'layer_norm'}, {type = 'attention', heads = 3, causal = true}]}, {type = 'linear', "
      "out "
      "= 17}]";
  for (const auto& model : {make("gpt", text(9, 17), "width = 12\nheads = 3\nlayers = 2\ntied = true"),
                            make("layers", text(9, 17), written)}) {
    const Graph whole = model->prediction(1);
    const auto decoding = model->decoding(1);
    ASSERT_TRUE(decoding.has_value());
    test::ModelMemory memory({&whole, &*decoding});
    for (float& v : memory.parameters.as<float>()) v += 0.03f;
    test::GraphRunner window(whole, memory), one(*decoding, memory);
    const std::vector<std::int32_t> said{3, 1, 16, 3, 9, 0, 2, 11, 5};
    std::ranges::copy(said, window.input<std::int32_t>("tokens").begin());
    window.run();
    for (std::size_t t = 0; t < said.size(); ++t) {
      one.input<std::int32_t>("tokens")[0] = said[t];
      one.input<std::int32_t>("position")[0] = static_cast<std::int32_t>(t);
      one.run();
      for (std::size_t c = 0; c < decoding->carries().size(); ++c) {
        const auto to = one.executor().carries()[c].to;
        std::memcpy(one.input<std::byte>(decoding->carries()[c].name).data(), to.data(), to.size());
      }
      for (std::size_t i = 0; i < 17; ++i)
        EXPECT_NEAR(one.output("logits")[i], window.output("logits")[t * 17 + i], 1e-4) << model->name() << " " << t;
    }
  }
}

TEST(Decoding, IsNotOfferedByNetworksThatMixPositionsOtherwise) {
  const auto written = [](const std::string& middle) {
    return "layers = [{type = 'embedding', rows = 17, width = 6}, " + middle + ", {type = 'linear', out = 17}]";
  };
  for (const char* middle : {"{type = 'gru', hidden = 5}", "{type = 'transpose'}, {type = 'transpose'}"})
    EXPECT_FALSE(make("layers", text(9, 17), written(middle))->decoding(1).has_value()) << middle;
  EXPECT_FALSE(make("char_lstm", text(16, 20))->decoding(1).has_value());
}

TEST(Zoo, LanguageModelsSeeOneTokenIfTheirStateIsCarried) {
  EXPECT_EQ(make("gpt", text(16, 20))->context(), 16);
  const auto carried = make("char_lstm", text(16, 20));
  EXPECT_EQ(carried->context(), 1);
  EXPECT_EQ(carried->training(4)[0].loss_terms, 16);
  EXPECT_EQ(carried->training(4)[0].graph.carries().size(), 2u);
  EXPECT_EQ(carried->prediction(1).carries().size(), 2u);
}

// In each of the two phases only one of the two networks learns, and both phases together train all weights.
TEST(Gan, TakesTurns) {
  const auto model = make("gan", mnist, "width = 4");
  const auto phases = model->training(2);
  ASSERT_EQ(phases.size(), 2u);
  for (std::size_t turn = 0; turn < 2; ++turn) {
    const Graph& graph = phases[turn].graph;
    const std::string learner = phases[turn].name + ".";
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
      const Parameter& p = graph.parameters()[i];
      if (p.kind != Parameter::Kind::weight) continue;
      EXPECT_EQ(bool(graph.contributions()[i]), p.name.starts_with(learner)) << phases[turn].name << " " << p.name;
    }
  }
  EXPECT_EQ(phases[0].graph.inputs().size(), 1u);
  EXPECT_TRUE(phases[1].graph.inputs().empty());
}

TEST(Zoo, EvaluationOfAPlainNetworkIsItsTrainingLoss) {
  const auto model = make("lenet5", mnist);
  const Phase phase = std::move(model->training(4)[0]);
  const Graph evaluation = model->evaluation(4);
  test::ModelMemory memory({&phase.graph, &evaluation});
  test::GraphRunner trained(phase.graph, memory), tested(evaluation, memory);
  fill(*model, phase.graph, trained);
  fill(*model, evaluation, tested);
  trained.run();
  tested.run();
  EXPECT_NEAR(trained.scalar("loss"), tested.scalar("loss"), 1e-4);
}

TEST(Mistakes, AreReportedWithPlaceAndCure) {
  EXPECT_TRUE(says(problems_of("lenet", mnist, "name = 'lenet'"), "did you mean 'lenet5'"));
  EXPECT_TRUE(says(problems_of("gpt", text(8, 9), "name = 'gpt'\nwidth = 10\nheads = 4\nlayer = 3"), "r.toml:4: "));
  EXPECT_TRUE(says(problems_of("gpt", text(8, 9), "width = 10\nheads = 4"), "does not divide the width 10"));
  EXPECT_TRUE(says(problems_of("gpt", mnist, ""), "needs text"));
  EXPECT_TRUE(says(problems_of("gan", images({1, 27, 27}, 10), ""), "multiples of 4"));
  EXPECT_TRUE(says(problems_of("gan", text(8, 9), ""), "needs images"));
  EXPECT_TRUE(
      says(problems_of("mlp", {.inputs = {{"x", f32({3})}}, .target = {}, .classes = 4}, ""), "learns from targets"));
  // Data that does not fit: the layer, and both shapes.
  const std::string flat = problems_of("lenet5", images({784}, 10), "");
  for (const char* part : {"layer 'conv1' (conv2d)", "[N, C, H, W]", "[2, 784]"}) EXPECT_TRUE(says(flat, part));
  EXPECT_TRUE(says(problems_of("vgg16", mnist, ""), "layer 'stage5.max_pool'"));
}

TEST(Mistakes, InLayersOfARecipeAreReportedAtTheirLine) {
  const std::string narrow =
      problems_of("layers", mnist, "layers = [\n{type = 'flatten'},\n{type = 'linear', out = 7}]");
  EXPECT_TRUE(says(narrow, "[2, 7]"));
  EXPECT_TRUE(says(narrow, "[2, 10]"));
  const std::string wrong =
      problems_of("layers", mnist, "layers = [\n{type = 'flatten'},\n{type = 'conv2d', out = 7, name = 'c'}]");
  EXPECT_TRUE(says(wrong, "r.toml:3: layer 'c' (conv2d)"));
  EXPECT_TRUE(says(problems_of("layers", mnist, ""), "[[model.layers]]"));
  EXPECT_TRUE(says(problems_of("layers", mnist, "outputs = ['hed']\nlayers = [{type = 'flatten', name = 'head'}]"),
                   "no layer has that name; did you mean 'head'"));
}

}  // namespace
}  // namespace echelon::models
