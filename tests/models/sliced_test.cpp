// Models in slices: the same network as the whole one, the same slices in every graph, and what is refused.
#include "models/wrappers/sliced.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "graph/gradient.h"
#include "graph/ops/slices.h"
#include "graph/passes/quantise.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/says.h"

namespace echelon::models {
namespace {

using test::says;

struct SmallModel {
  const char* name;
  const char* options;
  InputSpec inputs;
};

InputSpec small_images(Shape image, std::int64_t classes) {
  return {.inputs = {{"image", f32(image)}}, .target = {"label", i32({})}, .classes = classes};
}
InputSpec small_text(std::int64_t vocabulary) {
  return {.inputs = {{"tokens", i32({6})}}, .target = {"targets", i32({6})}, .classes = vocabulary};
}

std::unique_ptr<Model> make_small(const SmallModel& m, int slices) {
  const std::string text = fmt::format("{}\nslices = {}", m.options, slices);
  return make_model(m.name, m.inputs, parse_toml(text, "test"));
}

// Calls f(index in the whole parameter) for each number of a slice's part, in order.
template <typename F>
void for_each_in_part(const SlicedParameter& p, int slices, F&& f) {
  if (const int columns = p.cut.columns; columns > 1) {
    const Shape part = part_shape(p.shape, p.cut, slices, p.slice);
    for (std::int64_t r = 0; r < part[0]; ++r)
      for (std::int64_t c = 0; c < part[1]; ++c)
        f(static_cast<std::size_t>((p.slice / columns * part[0] + r) * p.shape[1] + p.slice % columns * part[1] + c));
    return;
  }
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < p.cut.axis; ++i) outer *= p.shape[i];
  for (int i = p.cut.axis + 1; i < p.shape.rank(); ++i) inner *= p.shape[i];
  const std::int64_t extent = p.shape[p.cut.axis], block = extent / p.cut.blocks;
  for (std::int64_t o = 0; o < outer; ++o)
    for (int b = 0; b < p.cut.blocks; ++b)
      for (std::int64_t k = block * p.slice / slices; k < block * (p.slice + 1) / slices; ++k)
        for (std::int64_t i = 0; i < inner; ++i)
          f(static_cast<std::size_t>(((o * extent) + b * block + k) * inner + i));
}

void fill_inputs(test::GraphRunner& runner, const Graph& graph, std::int64_t classes) {
  for (const auto& input : graph.inputs()) {
    const Stream s({.seed = 4, .layer = stream_layer(input.name.c_str())});
    if (graph.type(input.value).dtype == DType::i32) {
      auto ids = runner.input<std::int32_t>(input.name);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<std::int32_t>(s.bits(i) % static_cast<std::uint32_t>(classes));
    } else {
      auto x = runner.input<float>(input.name);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = s.normal(i);
    }
  }
}

// The sliced model with the whole model's weights: outputs, loss, gradients and statistics agree to rounding.
void expect_same_network(const SmallModel& m, int slices) {
  SCOPED_TRACE(fmt::format("{} in {} slices", m.name, slices));
  SmallModel unsliced = m;
  std::string options = m.options;  // without what only slices take
  options = options.substr(0, options.find("\nslice_"));
  unsliced.options = options.c_str();
  const auto whole = make_small(unsliced, 1), parts = make_small(m, slices);
  std::vector<Phase> a = whole->training(3), b = parts->training(3);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t phase = 0; phase < a.size(); ++phase) {
    Graph whole_evaluation = whole->evaluation(3), sliced_evaluation = parts->evaluation(3);
    test::ModelMemory wm({&a[phase].graph, &whole_evaluation}), pm({&b[phase].graph, &sliced_evaluation});
    const bool columns = std::string_view(m.options).find("columns") != std::string_view::npos,
               strips = columns || std::string_view(m.options).find("strips") != std::string_view::npos;
    const Sliced cut =
        slice(without_backward(a[phase].graph),
              {slices, strips, columns, std::string_view(m.options).find("grid") != std::string_view::npos,
               std::string_view(m.options).find("compute") != std::string_view::npos});
    ASSERT_FALSE(cut.parameters.empty());
    std::set<std::string> cut_names;
    for (const SlicedParameter& p : cut.parameters) {
      cut_names.insert(p.whole);
      std::size_t k = 0;
      for_each_in_part(p, slices, [&](std::size_t at) { pm.parameter(p.name)[k++] = wm.parameter(p.whole)[at]; });
      ASSERT_EQ(k, pm.parameter(p.name).size());
    }
    for (const auto& e : wm.table.entries())
      if (!cut_names.contains(e.parameter.name))
        std::ranges::copy(wm.parameter(e.parameter.name), pm.parameter(e.parameter.name).begin());

    auto compare = [&](const Graph& ga, const Graph& gb) {
      test::GraphRunner ra(ga, wm), rb(gb, pm);
      fill_inputs(ra, ga, m.inputs.classes);
      fill_inputs(rb, gb, m.inputs.classes);
      ra.run({.seed = 9}), rb.run({.seed = 9});
      for (const auto& [name, v] : ga.outputs()) {
        const auto x = ra.output(name), y = rb.output(name);
        ASSERT_EQ(x.size(), y.size()) << name;
        for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 2e-4 * (1 + std::abs(x[i]))) << name;
      }
    };
    compare(whole_evaluation, sliced_evaluation);
    compare(a[phase].graph, b[phase].graph);
    auto expect_near = [&](const std::string& name, std::span<float> of_whole, std::span<float> of_slice, auto&& each) {
      double scale = 0;
      for (float x : of_whole) scale = std::max(scale, std::abs(static_cast<double>(x)));
      std::size_t k = 0;
      each([&](std::size_t at) {
        ASSERT_NEAR(of_slice[k], of_whole[at], 2e-4 * scale + 1e-5) << name << " " << at;
        ++k;
      });
    };
    for (const SlicedParameter& p : cut.parameters)
      expect_near(p.name, wm.contribution(p.whole), pm.contribution(p.name),
                  [&](auto&& f) { for_each_in_part(p, slices, f); });
    for (const auto& e : wm.table.entries())
      if (!cut_names.contains(e.parameter.name))
        expect_near(e.parameter.name, wm.contribution(e.parameter.name), pm.contribution(e.parameter.name),
                    [&](auto&& f) {
                      for (std::size_t i = 0; i < e.size; ++i) f(i);
                    });
  }
}

const SmallModel small_gpt{"gpt", "width = 24\nheads = 6\nlayers = 2", small_text(11)};

TEST(SlicedModels, AreTheSameNetwork) {
  for (int slices : {2, 3, 6}) expect_same_network(small_gpt, slices);
  expect_same_network({"gpt", "width = 16\nheads = 4\nlayers = 1\ntied = true\nlabel_smoothing = 0.1", small_text(13)},
                      4);
  expect_same_network({"gpt", "width = 16\nheads = 4\nlayers = 2\nexperts = 4", small_text(13)}, 4);
  expect_same_network({"gpt", "width = 16\nheads = 4\nlayers = 1\nexperts = 4\nexperts_per_token = 1", small_text(13)},
                      2);
  for (int slices : {2, 4}) expect_same_network({"mlp", "hidden = [12, 8, 20]", small_images({10}, 5)}, slices);
  expect_same_network({"mlp", "hidden = [12, 8]\nbatch_norm = true", small_images({10}, 3)}, 4);
  expect_same_network(
      {"mlp", "hidden = [12, 8]\nloss = \"l1\"", {.inputs = {{"x", f32({7})}}, .target = {"y", f32({6})}}}, 2);
  expect_same_network({"lenet5", "", small_images({1, 28, 28}, 10)}, 2);
  for (int slices : {2, 4}) expect_same_network({"resnet20", "width = 8", small_images({3, 8, 8}, 10)}, slices);
  expect_same_network({"autoencoder", "hidden = [12, 8, 12]\nnoise = 0", small_images({1, 4, 4}, 2)}, 2);
}

TEST(SlicedModels, MatricesInBothDimensionsAreTheSameNetwork) {
  const std::string grid = "width = 24\nheads = 6\nlayers = 2\nslice_linear = \"grid\"";
  expect_same_network({"gpt", grid.c_str(), small_text(11)}, 6);
  expect_same_network({"mlp", "hidden = [12, 8, 20]\nslice_linear = \"grid\"", small_images({12}, 5)}, 4);
  EXPECT_TRUE(says(test::complaint_of([] {
                     make_small({"mlp", "hidden = [6]\nslice_linear = \"grid\"", small_images({6}, 5)}, 3);
                   }),
                   "no product of two numbers"));
}

TEST(SlicedModels, RecurrentLayersAreCutByUnits) {
  for (const char* name : {"char_lstm", "char_gru", "char_rnn"})
    for (int slices : {2, 4})
      expect_same_network({name, "hidden = 8\nlayers = 2\nembedding = 4", small_text(11)}, slices);
  for (const char* name : {"lstm", "gru"}) expect_same_network({name, "hidden = 6", small_images({5, 4}, 3)}, 3);
  const std::string units = test::complaint_of([] {
    make_small({"char_lstm", "hidden = 9\nembedding = 4", small_text(11)}, 2);
  });
  EXPECT_TRUE(says(units, "'cell' has 9 units")) << units;
  EXPECT_TRUE(says(units, "the nearest number that works is 1"));
}

TEST(SlicedModels, ImagesAreCutIntoStripsThatBorrowRowsFromTheirNeighbours) {
  const std::string strips = "\nslice_images = \"strips\"";
  for (int slices : {2, 3, 4}) expect_same_network({"lenet5", strips.c_str(), small_images({1, 28, 28}, 10)}, slices);
  const std::string resnet = "width = 4" + strips;
  for (int slices : {2, 3}) expect_same_network({"resnet20", resnet.c_str(), small_images({3, 8, 8}, 10)}, slices);
  const std::string alexnet = "hidden = 16\ndropout = 0\nstem = \"small\"" + strips;
  expect_same_network({"alexnet", alexnet.c_str(), small_images({3, 32, 32}, 10)}, 2);
  const Graph graph = make_small({"resnet20", resnet.c_str(), small_images({3, 8, 8}, 10)}, 2)->training(3)[0].graph;
  bool borrowed = false;
  for (const Node& node : graph.nodes())
    for (Value v : node.in) {
      if (node.slice < 0 || graph.slice_of(v) < 0 || graph.slice_of(v) == node.slice) continue;
      borrowed = true;  // only the rows at an edge travel: less than a strip of four
      EXPECT_LE(graph.type(v).shape[2], 2) << node.op->name() << " of " << node.layer;
    }
  EXPECT_TRUE(borrowed);
  EXPECT_TRUE(says(test::complaint_of([&] {
                     make_small({"lenet5", strips.c_str(), small_images({1, 28, 28}, 10)}, 1);
                   }),
                   "slice_images"));
}

TEST(SlicedModels, ImagesAreCutIntoColumnsToo) {
  const std::string columns = "\nslice_images = \"columns\"";
  for (int slices : {2, 3}) expect_same_network({"lenet5", columns.c_str(), small_images({1, 28, 28}, 10)}, slices);
  const std::string resnet = "width = 4" + columns;
  expect_same_network({"resnet20", resnet.c_str(), small_images({3, 8, 8}, 10)}, 2);
  const Graph graph = make_small({"resnet20", resnet.c_str(), small_images({3, 8, 8}, 10)}, 2)->training(3)[0].graph;
  bool borrowed = false;
  for (const Node& node : graph.nodes())
    for (Value v : node.in) {
      if (node.slice < 0 || graph.slice_of(v) < 0 || graph.slice_of(v) == node.slice) continue;
      borrowed = true;
      EXPECT_LE(graph.type(v).shape[3], 2) << node.op->name() << " of " << node.layer;
    }
  EXPECT_TRUE(borrowed);
}

// Values that a slice reads from another one while images are in strips: in which layers, and how many numbers.
std::map<std::string, std::int64_t> borrowed(const Graph& graph) {
  std::map<std::string, std::int64_t> numbers;
  for (const Node& node : graph.nodes())
    for (Value v : node.in)
      if (node.slice >= 0 && graph.slice_of(v) >= 0 && graph.slice_of(v) != node.slice &&
          graph.type(v).shape.rank() == 4)
        numbers[node.layer] += graph.type(v).shape.elements();
  return numbers;
}

TEST(SlicedModels, StripsThatOverlapComputeTheirHalosAndBorrowNothing) {
  const std::string exchange = "\nslice_images = \"strips\"", compute = exchange + "\nslice_halos = \"compute\"";
  const auto lenet = [](const std::string& options) {
    return SmallModel{"lenet5", options.c_str(), small_images({1, 28, 28}, 10)};
  };
  for (int slices : {2, 3, 4}) expect_same_network(lenet(compute), slices);
  const std::string alexnet = "hidden = 16\ndropout = 0\nstem = \"small\"" + compute;
  expect_same_network({"alexnet", alexnet.c_str(), small_images({3, 32, 32}, 10)}, 2);
  const std::string columns = "\nslice_images = \"columns\"\nslice_halos = \"compute\"";
  expect_same_network(lenet(columns), 3);
  EXPECT_FALSE(borrowed(make_small(lenet(exchange), 2)->training(3)[0].graph).empty());
  EXPECT_TRUE(borrowed(make_small(lenet(compute), 2)->training(3)[0].graph).empty());
  EXPECT_TRUE(borrowed(make_small(lenet(columns), 2)->training(3)[0].graph).empty());
  // A row of conv2's output that both need is computed by both: more work, which the first layer has most of.
  const auto flops = [&](const std::string& options) {
    double all = 0;
    const Graph graph = make_small(lenet(options), 2)->training(3)[0].graph;
    for (const Node& node : graph.nodes()) all += node.op->flops(graph.types(node.in), graph.types(node.out));
    return all;
  };
  EXPECT_GT(flops(compute), flops(exchange));
  EXPECT_LT(flops(compute), 2 * flops(exchange));
}

TEST(SlicedModels, OverlappingStripsEndWhereEveryRowCountsOnce) {
  // Statistics of a batch norm are of a strip's own rows; behind it a halo is borrowed for the layers up to the next.
  const std::string options = "width = 4\nslice_images = \"strips\"\nslice_halos = \"compute\"";
  for (int slices : {2, 3}) expect_same_network({"resnet20", options.c_str(), small_images({3, 8, 8}, 10)}, slices);
  const std::string chain =
      "layers = [{type = \"conv2d\", out = 4, padding = 1}, {type = \"relu\"}, {type = \"batch_norm\"}, {type = "
      "\"conv2d\", out = 4, "
      "padding = 1}, {type = \"relu\"}, {type = \"conv2d\", out = 4, padding = 1}, {type = \"locally_connected\", out "
      "= 2}, "
      "{type = \"flatten\"}, {type = \"linear\", out = 4}]\nslice_images = \"strips\"";
  const std::string compute = chain + "\nslice_halos = \"compute\"";
  const auto model = [](const std::string& text) {
    return SmallModel{"layers", text.c_str(), small_images({2, 12, 12}, 4)};
  };
  for (int slices : {2, 3}) expect_same_network(model(compute), slices);
  const auto once = borrowed(make_small(model(compute), 2)->training(3)[0].graph);
  const auto often = borrowed(make_small(model(chain), 2)->training(3)[0].graph);
  EXPECT_LT(once.size(), often.size());
  EXPECT_FALSE(once.empty());
  EXPECT_TRUE(says(test::complaint_of([&] {
                     make_small({"lenet5", "\nslice_halos = \"compute\"", small_images({1, 28, 28}, 10)}, 2);
                   }),
                   "slice_halos"));
}

TEST(SlicedModels, LocallyConnectedLayersAreCutByPlacesAndBorrowOnlyAHalo) {
  const std::string layers =
      "layers = [{type = \"locally_connected\", out = 3}, {type = \"relu\"}, {type = \"locally_connected\", out = 2, "
      "padding = 1}, {type = \"flatten\"}, {type = \"linear\", out = 4}]";
  for (const char* images : {"", "\nslice_images = \"strips\"", "\nslice_images = \"columns\""}) {
    const std::string options = layers + images;
    const SmallModel model{"layers", options.c_str(), small_images({2, 9, 9}, 4)};
    for (int slices : {2, 3}) expect_same_network(model, slices);
    const Graph graph = make_small(model, 3)->training(3)[0].graph;
    const int axis = options.ends_with("columns\"") ? 3 : 2;
    for (const Node& node : graph.nodes())
      for (Value v : node.in)
        if (node.slice >= 0 && graph.slice_of(v) >= 0 && graph.slice_of(v) != node.slice) {
          EXPECT_LE(graph.type(v).shape[axis], 2) << node.op->name() << " of " << node.layer;
        }
  }
}

TEST(SlicedModels, AGansDiscriminatorIsCutInOneWayWhoeverItLooksAt) {
  // Real images arrive whole, generated ones may arrive cut: the weights are the same.
  for (const char* kind : {"dense", "conv"}) {
    const SmallModel m{"gan", kind[0] == 'd' ? "kind = \"dense\"\nwidth = 8" : "width = 8",
                       small_images({1, 28, 28}, 2)};
    const auto model = make_small(m, 2);
    const std::vector<Phase> phases = model->training(3);
    const Graph drawing = model->prediction(3);
    test::ModelMemory memory({&phases[0].graph, &phases[1].graph, &drawing});
    for (const Phase& phase : phases) {
      test::GraphRunner runner(phase.graph, memory);
      fill_inputs(runner, phase.graph, 2);
      runner.run({.seed = 2});
      EXPECT_TRUE(std::isfinite(runner.scalar("loss")));
      for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
        if (phase.graph.parameters()[i].kind == Parameter::Kind::weight) {
          const bool moves = bool(phase.graph.contributions()[i]);
          EXPECT_EQ(moves, phase.graph.parameters()[i].name.starts_with(phase.name))
              << phase.graph.parameters()[i].name;
        }
    }
  }
}

TEST(SlicedModels, AlexNetKeepsItsGroupsAmongThemselves) {
  expect_same_network({"alexnet", "hidden = 16\ndropout = 0\nstem = \"small\"", small_images({3, 32, 32}, 10)}, 2);
}

TEST(SlicedModels, TheLogitsOfALanguageModelAreNeverGatheredWhileItTrains) {
  const std::int64_t rows = 3 * 6;
  const Graph graph = make_small(small_gpt, 3)->training(3)[0].graph;
  for (const Node& node : graph.nodes())
    for (Value v : node.out) EXPECT_FALSE(graph.type(v).shape == (Shape{rows, 11})) << node.op->name();
  // Every slice has its own part of the vocabulary, of the heads and of the inner features.
  std::set<std::string> names;
  for (const Parameter& p : graph.parameters()) names.insert(p.name);
  for (const char* name :
       {"tok.slice2.weight", "block1.attention.qkv.slice0.weight", "block1.attention.out.slice1.weight",
        "block0.up.slice2.bias", "block0.down.slice0.weight", "head.slice1.weight"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_TRUE(names.contains("block0.down.bias"));
  EXPECT_FALSE(names.contains("block0.up.weight"));
}

TEST(SlicedModels, NoNodeOfASliceReadsAnotherSliceAndEveryWholeNodeThatJoinsIsASumOrAConcat) {
  for (const SmallModel& m : {small_gpt, SmallModel{"resnet20", "width = 8", small_images({3, 8, 8}, 10)}}) {
    const Plan plan = compile(make_small(m, 2)->training(3)[0].graph);
    const Graph& graph = plan.graph;
    std::set<int> seen;
    for (const Node& node : graph.nodes()) {
      seen.insert(node.slice);
      std::set<int> reads;
      for (Value v : node.in) reads.insert(graph.slice_of(v));
      reads.erase(-1);
      if (node.slice >= 0)
        EXPECT_TRUE(reads.empty() || reads == std::set{node.slice}) << node.op->name() << " of " << node.layer;
      else
        EXPECT_TRUE(reads.size() < 2 || ops::is_tree_sum(*node.op) || node.op->name() == "concat") << node.op->name();
    }
    EXPECT_EQ(seen, (std::set{-1, 0, 1}));
  }
}

TEST(SlicedModels, DropoutDropsOtherElementsInEverySlice) {
  const SmallModel m{"mlp", "hidden = [64, 8]\ndropout = 0.5", small_images({10}, 4)};
  const auto model = make_small(m, 2);
  const Graph graph = model->training(3)[0].graph;
  std::set<std::string> seen;
  int drops = 0;
  for (const Node& node : graph.nodes())
    if (node.op->name() == "dropout" && !node.backward && node.slice >= 0) ++drops;
  EXPECT_EQ(drops, 2);
  test::ModelMemory memory({&graph});
  Graph copy = graph;
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (node.op->name() == "dropout" && !node.backward && node.slice >= 0) {
      names.push_back(fmt::format("drop{}", node.slice));
      copy.set_output(names.back(), node.out[0]);
    }
  test::GraphRunner runner(copy, memory, {.fuse = false});
  fill_inputs(runner, copy, 4);
  runner.run({.seed = 3});
  std::vector<std::vector<bool>> masks;
  for (const std::string& name : names) {
    masks.emplace_back();
    for (float x : runner.output(name)) masks.back().push_back(x == 0);
  }
  EXPECT_NE(masks[0], masks[1]);
}

TEST(SlicedModels, EveryModelOfTheZooCanBeCutInTwoOrSaysWhyNot) {
  for (const Entry& entry : zoo()) {
    if (entry.name == "layers") continue;
    SCOPED_TRACE(std::string(entry.name));
    const std::string problem = test::complaint_of(
        [&] { make_model(std::string(entry.name), entry.usual_inputs(), parse_toml("slices = 2", "test")); });
    EXPECT_TRUE(problem.empty() || says(problem, "the nearest number that works")) << problem;
  }
}

TEST(SlicedModels, SlicesThatDoNotDivideAreRefusedWithEveryLayerAndTheNearestNumber) {
  const std::string heads = test::complaint_of([] { make_small(small_gpt, 4); });
  EXPECT_TRUE(says(heads, "slices = 4 does not divide 2 layers")) << heads;
  EXPECT_TRUE(says(heads, "'block0.attention' has 6 heads"));
  EXPECT_TRUE(says(heads, "'block1.attention' has 6 heads"));
  EXPECT_TRUE(says(heads, "the nearest number that works is 3"));
  const std::string channels = test::complaint_of([] { make_small({"lenet5", "", small_images({1, 28, 28}, 10)}, 5); });
  EXPECT_TRUE(says(channels, "'conv1' has 6 channels")) << channels;
  EXPECT_TRUE(says(channels, "the nearest number that works is 6"));
}

TEST(SlicedModels, AreNotQuantised) {
  const std::string text = test::complaint_of([] {
    make_model("lenet5", small_images({1, 28, 28}, 10),
               parse_toml("slices = 2\nquantise = { scheme = \"bnn\" }", "test"));
  });
  EXPECT_TRUE(says(text, "slices")) << text;
  EXPECT_TRUE(says(text, "does not go together with [model.quantise]"));
}

}  // namespace
}  // namespace echelon::models
