// Sizes that no machine has: every layer refuses them by name, before anything is computed from them.
#include <gtest/gtest.h>

#include "base/checked.h"
#include "nn/layer_table.h"
#include "nn/layers.h"
#include "recipe/toml.h"
#include "tests/support/says.h"

namespace echelon::nn {
namespace {

using test::complaint_of;
using test::says;

constexpr std::int64_t large = 1 << 24;

Shape of_network(const std::string& toml, const Type& input) {
  const Options options = parse_toml(toml, "recipe.toml");
  Problems problems;
  OptionReader reader(options, problems);
  const auto layers = read_layers(reader, "layers");
  problems.throw_if_any("recipe.toml");
  Graph graph;
  Net net(graph);
  return net.shape(build_layers(net, graph.input("x", input), layers));
}

const Type image = f32({8, 1, 28, 28});

TEST(Sizes, EnlargingTooOftenNamesTheLayer) {
  const std::string three =
      "[[layers]]\ntype = 'upsample'\nfactor = 256\n[[layers]]\ntype = 'upsample'\nfactor = 256\n"
      "[[layers]]\ntype = 'upsample'\nfactor = 256\nname = 'last'\n";
  const std::string text = complaint_of([&] { of_network(three, image); });
  EXPECT_TRUE(says(text, "upsample"));
  EXPECT_TRUE(says(text, "a tensor has at most"));
  EXPECT_TRUE(says(complaint_of([&] { of_network("[[layers]]\ntype = 'upsample'\nfactor = 1048576\n", image); }),
                   "from 1 to 256"));
}

TEST(Sizes, EveryLayerThatCanGrowIsChecked) {
  Graph graph;
  Net net(graph);
  const Value features = graph.input("f", f32({1 << 10, large}));
  EXPECT_THROW(graph.input("g", f32({large, large, large})), TooLarge);
  EXPECT_THROW(net.linear(features, large), TooLarge);
  EXPECT_THROW(net.embedding(graph.input("ids", i32({1 << 20, 1 << 10})), large, large), TooLarge);
  EXPECT_THROW(net.embedding(graph.input("ids2", i32({1 << 20, 1 << 10})), 16, large), TooLarge);
  const Value sequence = graph.input("s", f32({1 << 10, 1 << 20, 4}));
  EXPECT_THROW(net.lstm(sequence, large), TooLarge);
  EXPECT_THROW(net.gru(sequence, 1 << 16), TooLarge);
  EXPECT_THROW(net.concat(std::vector<Value>(1000, features)), TooLarge);
  const Value picture = graph.input("p", f32({64, 3, 1024, 1024}));
  EXPECT_THROW(net.conv2d(picture, large, {.kernel = 1023}), TooLarge);
  EXPECT_THROW(net.conv2d(picture, 8, {.kernel = 3, .padding = 1 << 20}), BadInput);
  EXPECT_THROW(net.reshape(picture, {3, std::int64_t{1} << 62, std::int64_t{1} << 62}), TooLarge);
}

TEST(Sizes, ALayerNamesItselfAndTheShape) {
  Graph graph;
  Net net(graph);
  const Value features = graph.input("f", f32({1 << 20, 64}));
  EXPECT_TRUE(says(complaint_of([&] { net.named("wide").linear(features, large); }),
                   "layer 'wide' (linear): [1048576, 16777216] would be 17.6 T elements"));
}

TEST(Sizes, ANetworkOfVeryManyLayersIsRefused) {
  Graph graph;
  Net net(graph);
  Value x = graph.input("x", f32({1, 4}));
  EXPECT_TRUE(says(complaint_of([&] {
                     for (int i = 0; i < 100'000; ++i) x = net.relu(x);
                   }),
                   "more than 65536 operations"));
}

TEST(Sizes, LayersWithoutNamesAreNumberedAroundThoseThatHaveOne) {
  Graph graph;
  Net net(graph);
  Value x = graph.input("x", f32({1, 4}));
  x = net.linear(net.named("linear3").linear(net.linear(x, 4), 4), 4);
  net.linear(net.linear(x, 4), 4);
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters())
    if (p.name.ends_with(".bias")) names.push_back(p.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"linear.bias", "linear3.bias", "linear2.bias", "linear4.bias", "linear5.bias"}));
}

}  // namespace
}  // namespace echelon::nn
