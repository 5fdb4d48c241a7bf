// The slice pass on graphs of its own: what it cuts, what it joins, what it leaves.
#include "graph/passes/slice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/ops/attention.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/linear.h"
#include "graph/ops/norm.h"
#include "graph/ops/shape.h"

namespace echelon {
namespace {

Value slice_weights(Graph& g, const char* name, Shape shape) {
  return g.parameter({.name = name, .shape = shape, .init = {.fan_in = 99}});
}

std::ptrdiff_t nodes_named(const Graph& g, std::string_view op) {
  return std::ranges::count_if(g.nodes(), [&](const Node& node) { return node.op->name() == op; });
}

TEST(SlicePass, OneSliceIsTheGraphItself) {
  Graph g;
  g.set_output("y", ops::linear(g, g.input("x", f32({2, 4})), slice_weights(g, "w", {6, 4}), {}));
  EXPECT_EQ(to_string(slice(g, 1).graph), to_string(g));
}

TEST(SlicePass, ColumnsThenRowsMeetInOneSum) {
  Graph g;
  const Value up = ops::linear(g, g.input("x", f32({2, 4})), slice_weights(g, "a.up.weight", {6, 4}),
                               slice_weights(g, "up.bias", {6}));
  g.set_output("y", ops::linear(g, ops::gelu(g, up), slice_weights(g, "down.weight", {8, 6}),
                                slice_weights(g, "down.bias", {8})));
  const Sliced s = slice(g, 3);
  EXPECT_TRUE(s.indivisible.empty());
  EXPECT_EQ(nodes_named(s.graph, "linear"), 6);
  EXPECT_EQ(nodes_named(s.graph, "gelu"), 3);
  EXPECT_EQ(nodes_named(s.graph, "tree_sum"), 1);
  EXPECT_EQ(nodes_named(s.graph, "concat"), 0);
  EXPECT_EQ(nodes_named(s.graph, "split"), 0);
  EXPECT_EQ(s.cuts.at("a.up.weight"), (Cut{0}));
  EXPECT_EQ(s.cuts.at("down.weight"), (Cut{1}));
  EXPECT_TRUE(s.cuts.at("down.bias").is_whole());  // added once, by slice 0
  ASSERT_EQ(s.parameters.size(), 9u);
  EXPECT_EQ(s.parameters[1].name, "a.up.slice1.weight");
  for (const Parameter& p : s.graph.parameters())
    if (p.name == "a.up.slice1.weight") {
      EXPECT_EQ(p.shape, (Shape{2, 4}));
      EXPECT_EQ(p.init.fan_in, 99);  // the whole layer's
    }
}

TEST(SlicePass, AnOpThatNeedsTheWholeGetsItOnceAndGivesItBackInParts) {
  Graph g;
  const Value x = ops::linear(g, g.input("x", f32({2, 4})), slice_weights(g, "a", {6, 4}), {});
  const Value y = ops::layer_norm(g, x, slice_weights(g, "gamma", {6}), slice_weights(g, "beta", {6}), 1e-5f);
  const Value z =
      ops::add(g, x, ops::layer_norm(g, x, slice_weights(g, "gamma2", {6}), slice_weights(g, "beta2", {6}), 1e-5f));
  g.set_output("y", ops::linear(g, ops::add(g, z, y), slice_weights(g, "b", {2, 6}), {}));
  const Sliced s = slice(g, 2);
  EXPECT_EQ(nodes_named(s.graph, "concat"), 1) << to_string(s.graph);
  EXPECT_EQ(nodes_named(s.graph, "layer_norm"), 2);
  EXPECT_EQ(nodes_named(s.graph, "split"), 2);  // each norm's result meets what is cut
  EXPECT_EQ(nodes_named(s.graph, "tree_sum"), 1);
}

TEST(SlicePass, QueriesKeysAndValuesAreCutEachForItself) {
  Graph g;
  const Value qkv = ops::linear(g, g.input("x", f32({2, 5, 8})), slice_weights(g, "qkv", {24, 8}), {});
  g.set_output("y", ops::linear(g, ops::attention(g, qkv, 4, true), slice_weights(g, "out", {8, 8}), {}));
  const Sliced s = slice(g, 2);
  EXPECT_EQ(s.cuts.at("qkv"), (Cut{0, 3}));
  EXPECT_EQ(nodes_named(s.graph, "attention"), 2);
  EXPECT_EQ(nodes_named(s.graph, "concat"), 0);
  const Sliced three = slice(g, 3);
  ASSERT_EQ(three.indivisible.size(), 1u);
  EXPECT_EQ(three.indivisible[0].units, 8);  // of each of q, k and v
}

TEST(SlicePass, OnlyTheLastLayerMayHaveUnevenParts) {
  Graph g;
  const Value hidden = ops::linear(g, g.input("x", f32({2, 4})), slice_weights(g, "hidden", {7, 4}), {});
  g.set_output("y", ops::linear(g, hidden, slice_weights(g, "last", {5, 7}), {}));
  const Sliced s = slice(g, 2);
  ASSERT_EQ(s.indivisible.size(), 1u);
  EXPECT_EQ(s.indivisible[0].units, 7);

  Graph alone;
  alone.set_output("y", ops::linear(alone, alone.input("x", f32({2, 4})), slice_weights(alone, "last", {5, 4}), {}));
  const Sliced parts = slice(alone, 2);
  EXPECT_TRUE(parts.indivisible.empty());
  ASSERT_EQ(parts.graph.parameters().size(), 2u);
  EXPECT_EQ(parts.graph.parameters()[0].shape, (Shape{2, 4}));
  EXPECT_EQ(parts.graph.parameters()[1].shape, (Shape{3, 4}));
  EXPECT_EQ(slice(alone, 6).graph.parameters().size(), 1u);  // more slices than outputs: kept whole
}

TEST(SlicePass, AParameterThatAnotherGraphHasCutStaysCutLikeThat) {
  Graph g;
  g.set_output(
      "y", ops::linear(g, ops::relu(g, ops::linear(g, g.input("x", f32({2, 4})), slice_weights(g, "a", {6, 4}), {})),
                       slice_weights(g, "b", {4, 6}), {}));
  const Cuts other{{"a", {1}}, {"b", {}}};
  const Sliced s = slice(g, 2, other);
  EXPECT_EQ(s.cuts, other);
  EXPECT_EQ(s.graph.parameters().size(), 3u);
}

TEST(SlicePass, AReshapeKeepsACutThatItDoesNotTouch) {
  Graph g;
  const Value x = ops::linear(g, g.input("x", f32({2, 3, 4})), slice_weights(g, "a", {6, 4}), {});
  g.set_output("rows", ops::relu(g, ops::reshape(g, x, {6, 6})));
  g.set_output("flat", ops::relu(g, ops::reshape(g, x, {2, 18})));
  const Sliced s = slice(g, 2);
  std::map<std::string, int> slices_of;
  for (const Node& node : s.graph.nodes())
    if (node.op->name() == "relu") ++slices_of[to_string(s.graph.type(node.out[0]).shape)];
  EXPECT_EQ(slices_of, (std::map<std::string, int>{{"[6, 3]", 2}, {"[2, 18]", 1}})) << to_string(s.graph);
}

}  // namespace
}  // namespace echelon
