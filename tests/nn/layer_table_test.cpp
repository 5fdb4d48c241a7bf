// Networks as data: the same graph as in C++, and every mistake reported with its place.
#include "nn/layer_table.h"

#include <gtest/gtest.h>

#include <set>

#include "recipe/toml.h"
#include "tests/support/says.h"

namespace echelon::nn {
namespace {

using test::says;

Graph build(std::string_view toml, const Type& type) {
  const Options options = parse_toml(toml, "recipe.toml");
  Problems problems;
  OptionReader reader(options, problems);
  const auto layers = read_layers(reader, "layers");
  problems.throw_if_any("recipe.toml");
  Graph graph;
  Net net(graph);
  graph.set_output("y", build_layers(net, graph.input("x", type), layers));
  return graph;
}

template <typename F>
Graph in_cpp(const Type& type, F&& network) {
  Graph graph;
  Net net(graph);
  graph.set_output("y", network(net, graph.input("x", type)));
  return graph;
}

void expect_same(const Graph& a, const Graph& b) {
  EXPECT_EQ(to_string(a), to_string(b));
  ASSERT_EQ(a.parameters().size(), b.parameters().size());
  for (std::size_t i = 0; i < a.parameters().size(); ++i) {
    const Parameter &p = a.parameters()[i], &q = b.parameters()[i];
    EXPECT_EQ(p.name, q.name);
    EXPECT_EQ(p.shape, q.shape);
    EXPECT_EQ(p.init.kind, q.init.kind) << p.name;
    EXPECT_EQ(p.init.value, q.init.value) << p.name;
  }
}

std::string problems_of(std::string_view toml) {
  const Options options = parse_toml(toml, "recipe.toml");
  Problems problems;
  OptionReader reader(options, problems);
  read_layers(reader, "layers");
  return problems.text("recipe.toml");
}

TEST(LayerTable, BuildsWhatCppBuilds) {
  const char* toml = R"(layers = [
    {type = "conv2d", out = 8, kernel = 5, padding = [2, 1], name = "stem"},
    {type = "batch_norm", eps = 1e-3},
    {type = "relu"},
    {type = "depthwise", padding = 1, bias = false, name = "left"},
    {type = "conv2d", out = 8, kernel = 1, padding = [0, 0], input = "stem", init = "he_normal"},
    {type = "leaky_relu", slope = 0.2, name = "right"},
    {type = "add", inputs = ["left", "right"], name = "sum"},
    {type = "concat", inputs = ["sum", "right", "left"]},
    {type = "local_response_norm", size = 3},
    {type = "max_pool", kernel = 3, stride = 2, padding = 1},
    {type = "avg_pool"},
    {type = "dropout", p = 0.25},
    {type = "flatten"},
    {type = "linear", out = 10, weight_norm = true, bias = false},
    {type = "softmax"}])";
  const Type type = f32({2, 3, 16, 16});
  expect_same(build(toml, type), in_cpp(type, [](Net& net, Value x) {
                const Value stem = net.named("stem").conv2d(x, 8, {.kernel = 5, .padding = {2, 1}});
                x = net.relu(net.batch_norm(stem, {.eps = 1e-3f}));
                const Value left = net.named("left").depthwise(x, {.padding = 1, .bias = false});
                x = net.conv2d(stem, 8, {.kernel = 1, .init = he_normal()});
                const Value right = net.named("right").leaky_relu(x, 0.2f);
                const Value sum = net.named("sum").add(left, right);
                x = net.local_response_norm(net.concat({sum, right, left}), {.size = 3});
                x = net.dropout(net.avg_pool(net.max_pool(x, 3, {.stride = 2, .padding = 1}), 2), 0.25f);
                return net.softmax(net.linear(net.flatten(x), 10, {.bias = false, .weight_norm = true}));
              }));
}

TEST(LayerTable, BuildsSequencesToo) {
  const char* toml = R"(layers = [
    {type = "embedding", rows = 50, width = 12},
    {type = "positions"},
    {type = "attention", heads = 3, causal = true},
    {type = "layer_norm"},
    {type = "gelu"},
    {type = "lstm", hidden = 7, layers = 2, dropout = 0.5, carry = true},
    {type = "gru", hidden = 6},
    {type = "rnn", hidden = 5, output = "last"},
    {type = "reshape", shape = [5, 1, 1]},
    {type = "upsample", factor = 2},
    {type = "global_avg_pool"}])";
  const Type type = i32({2, 9});
  expect_same(build(toml, type), in_cpp(type, [](Net& net, Value x) {
                x = net.attention(net.positions(net.embedding(x, 50, 12)), {.heads = 3, .causal = true});
                x = net.gelu(net.layer_norm(x));
                x = net.lstm(x, 7, {.layers = 2, .dropout = 0.5f, .carry = true}).all;
                x = net.rnn(net.gru(x, 6).all, 5).last;
                return net.global_avg_pool(net.upsample(net.reshape(x, {5, 1, 1}), 2));
              }));
}

TEST(LayerTable, BuildsTheLayersOfEveryday) {
  const char* images = R"(layers = [
    {type = "conv_transpose2d", out = 6, kernel = 2, stride = 2, name = "up"},
    {type = "group_norm", groups = 3},
    {type = "silu", name = "seen"},
    {type = "global_avg_pool"},
    {type = "linear", out = 6},
    {type = "sigmoid", name = "gate"},
    {type = "multiply", inputs = ["seen", "gate"]}])";
  const Type image = f32({2, 3, 4, 4});
  expect_same(build(images, image), in_cpp(image, [](Net& net, Value x) {
                x = net.named("up").conv_transpose2d(x, 6, {.kernel = 2, .stride = 2});
                const Value seen = net.named("seen").silu(net.group_norm(x, 3));
                return net.multiply({seen, net.named("gate").sigmoid(net.linear(net.global_avg_pool(seen), 6))});
              }));
  const char* sequences = R"(layers = [
    {type = "transpose"},
    {type = "conv1d", out = 8, kernel = 3, padding = 1, groups = 2},
    {type = "batch_norm"},
    {type = "max_pool", kernel = 2},
    {type = "transpose", name = "short"},
    {type = "lstm", hidden = 4, layers = 2, bidirectional = true, input = "input", name = "read"},
    {type = "cross_attention", heads = 2, inputs = ["read", "short"]},
    {type = "gru", hidden = 3, bidirectional = true, output = "last"}])";
  const Type sequence = f32({2, 6, 4});
  expect_same(build(sequences, sequence), in_cpp(sequence, [](Net& net, Value x) {
                Value y = net.batch_norm(net.conv1d(net.transpose(x), 8, {.padding = 1, .groups = 2}));
                y = net.named("short").transpose(net.max_pool(y, 2));
                const Value read = net.named("read").lstm(x, 4, {.layers = 2, .bidirectional = true}).all;
                y = net.cross_attention(read, y, {.heads = 2});
                return net.gru(y, 3, {.bidirectional = true}).last;
              }));
}

TEST(LayerTable, BlocksAreBuiltAsOftenAsTheySay) {
  const char* toml = R"(layers = [
    {type = "linear", out = 5, name = "stem"},
    {type = "block", repeat = 2, residual = true, name = "body", layers = [
      {type = "linear", out = 7},
      {type = "block", layers = [{type = "relu"}]},
      {type = "linear", out = 5, name = "back"},
      {type = "add", inputs = ["input", "back", "stem"]}]},
    {type = "block", layers = [{type = "linear", out = 2}]}])";
  const Type type = f32({3, 4});
  const Graph graph = build(toml, type);
  expect_same(graph, in_cpp(type, [](Net& net, Value x) {
                const Value stem = x = net.named("stem").linear(x, 5);
                for (int i = 0; i < 2; ++i) {
                  const auto body = net.block("body." + std::to_string(i));
                  Value y = net.linear(x, 7);
                  {
                    const auto inner = net.block("block");
                    y = net.relu(y);
                  }
                  y = net.named("back").linear(y, 5);
                  x = net.add(x, net.add({x, y, stem}));
                }
                const auto last = net.block("block");
                return net.linear(x, 2);
              }));
  EXPECT_EQ(graph.parameters()[2].name, "body.0.linear.weight");
  EXPECT_EQ(graph.parameters().back().name, "block.linear.bias");
}

TEST(LayerTable, ProblemsInsideOfBlocksHaveTheirPlace) {
  const std::string text = problems_of(R"(layers = [
    {type = "block", layers = [
      {type = "linear", outs = 7, name = "inside"},
      {type = "relu", input = "insid"}]},
    {type = "relu", input = "inside"},
    {type = "block", repeat = 0, layers = []},
    {type = "block"},
    {type = "block", repeat = 4000, layers = [{type = "relu"}, {type = "relu"}]}])");
  for (const char* part : {"recipe.toml:3: unknown key layers[0].layers[0].outs",
                           "recipe.toml:4: ", "did you mean 'inside'", "recipe.toml:5: ", "no layer before this one",
                           "recipe.toml:6: ", "repeat", "recipe.toml:7: ", "which layers", "more than 4096"})
    EXPECT_TRUE(says(text, part));
  try {
    build(
        "layers = [{type = \"block\", repeat = 3, layers = [\n{type = \"linear\", out = 3},\n{type = \"conv2d\", out = "
        "2}]}]",
        f32({2, 3}));
    FAIL();
  } catch (const LayerError& e) {
    EXPECT_EQ(e.place().line, 3);
    EXPECT_TRUE(says(e.what(), "layer 'block.0.conv' (conv2d)"));
  }
}

TEST(LayerTable, SeveralInputsAreReadByName) {
  const Options options = parse_toml(R"(layers = [
    {type = "linear", out = 3, input = "numbers", name = "a"},
    {type = "linear", out = 3, input = "more"},
    {type = "add", inputs = ["a", "numbers"]}])",
                                     "recipe.toml");
  Problems problems;
  OptionReader reader(options, problems);
  const auto layers = read_layers(reader, "layers", {"numbers", "more"});
  problems.throw_if_any("recipe.toml");
  Graph graph;
  Net net(graph);
  const Value numbers = graph.input("numbers", f32({2, 3})), more = graph.input("more", f32({2, 5}));
  const BuiltLayers built = build_layers(net, {{"numbers", numbers}, {"more", more}}, layers);
  EXPECT_EQ(graph.type(built.last).shape, (Shape{2, 3}));
  EXPECT_EQ(graph.parameters()[2].shape, (Shape{3, 5}));

  Problems wrong;
  const Options silent = parse_toml("layers = [{type = \"linear\", out = 3}]", "recipe.toml");
  OptionReader again(silent, wrong);
  read_layers(again, "layers", {"numbers", "more"});
  EXPECT_TRUE(says(wrong.text("recipe.toml"), "set input to one of numbers, more"));
  EXPECT_TRUE(says(wrong.text("recipe.toml"), "leave out the data set's 'more'"));
}

TEST(LayerTable, HasEveryKindOnce) {
  std::set<std::string_view> names;
  for (const LayerKind& kind : layer_table()) EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  for (const char* name : {"linear",     "conv2d",     "depthwise",
                           "max_pool",   "avg_pool",   "global_avg_pool",
                           "batch_norm", "layer_norm", "local_response_norm",
                           "dropout",    "embedding",  "rnn",
                           "lstm",       "gru",        "attention",
                           "add",        "concat",     "flatten",
                           "relu",       "leaky_relu", "gelu",
                           "sigmoid",    "tanh",       "softplus",
                           "elu",        "softmax"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(LayerTable, ReportsEveryProblemAtOnce) {
  const std::string text = problems_of(R"(layers = [
    {type = "conv2", out = 6},
    {type = "conv2d"},
    {type = "linear", out = 6, biass = true, name = "first"},
    {type = "linear", out = -6, name = "first"},
    {type = "add"},
    {type = "relu", input = "frist"},
    {type = "relu", inputs = ["first", "first"]},
    {name = "x"},
    {type = "conv2d", out = 2, kernel = [1, 2, 3]},
    {type = "relu", input = "later"},
    {type = "relu", name = "later"}])");
  for (const char* part : {"recipe.toml:2: layers[0].type must be one of",
                           "did you mean 'conv2d'",
                           "recipe.toml:3: ",
                           "how many output channels",
                           "recipe.toml:4: ",
                           "did you mean 'bias'",
                           "recipe.toml:5: ",
                           "name is taken",
                           "out must be",
                           "recipe.toml:6: ",
                           "joins several",
                           "recipe.toml:7: ",
                           "'frist'",
                           "did you mean 'first'",
                           "recipe.toml:8: ",
                           "takes one",
                           "recipe.toml:9: ",
                           "which kind of layer",
                           "recipe.toml:10: ",
                           "[height, width]",
                           "recipe.toml:11: ",
                           "'later', but no layer before this one"})
    EXPECT_TRUE(says(text, part));
}

TEST(LayerTable, ShapesThatDoNotFitNameThePlace) {
  try {
    build("layers = [\n{type = \"flatten\"},\n{type = \"conv2d\", out = 6, name = \"conv1\"}]", f32({2, 3, 8, 8}));
    FAIL();
  } catch (const LayerError& e) {
    EXPECT_EQ(e.place().line, 3);
    EXPECT_TRUE(says(e.what(), "layer 'conv1' (conv2d)"));
    EXPECT_TRUE(says(e.what(), "[2, 192]"));
  }
}

TEST(LayerTable, ANameThatIsNoLayerIsOneProblem) {
  const std::string problems =
      problems_of(R"(layers = [{type = "relu", name = "a"}, {type = "add", inputs = ["a", "aa"]}])");
  EXPECT_TRUE(says(problems, "names 'aa', but no layer before this one has that name; did you mean 'a'?"));
  EXPECT_FALSE(says(problems, "joins several")) << problems;
}

}  // namespace
}  // namespace echelon::nn
