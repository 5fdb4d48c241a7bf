// Layers: names, parameters, sharing, carried state, and what they say when shapes do not fit.
#include "nn/layers.h"

#include <gtest/gtest.h>

#include "tests/support/graph_runner.h"
#include "tests/support/says.h"

namespace echelon::nn {
namespace {

using test::complaint_of;
using test::says;

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& p : graph.parameters()) names.push_back(p.name);
  return names;
}

std::int64_t weights(const Graph& graph) {
  ParameterTable table;
  table.include(graph);
  return table.weights();
}

TEST(Names, AreGivenAfterTheKindAndCounted) {
  Graph g;
  Net net(g);
  Value x = g.input("x", f32({2, 8}));
  x = net.linear(net.linear(x, 4), 3, {.bias = false});
  {
    const auto block = net.block("block1");
    x = net.linear(x, 2, {.bias = false});
  }
  net.named("head").linear(x, 2, {.bias = false});
  EXPECT_EQ(parameter_names(g), (std::vector<std::string>{"linear.weight", "linear.bias", "linear2.weight",
                                                          "block1.linear.weight", "head.weight"}));
}

TEST(Names, AGivenNameIsNotTakenAgainByACountedOne) {
  Graph g;
  Net net(g);
  const Value x = g.input("x", f32({2, 8}));
  net.named("linear2").linear(x, 3, {.bias = false});
  net.linear(x, 3, {.bias = false});
  net.linear(x, 3, {.bias = false});
  EXPECT_EQ(parameter_names(g), (std::vector<std::string>{"linear2.weight", "linear.weight", "linear3.weight"}));
}

TEST(Names, ANameBelongsToOneLayerEvenWhenCallsAreNested) {
  Graph g;
  Net net(g);
  const Value x = g.input("x", f32({2, 8}));
  net.named("outer").linear(net.named("inner").linear(x, 4, {.bias = false}), 2, {.bias = false});
  EXPECT_EQ(parameter_names(g), (std::vector<std::string>{"inner.weight", "outer.weight"}));
}

TEST(Names, TwoLayersOfOneNameAreRefused) {
  Graph g;
  Net net(g);
  const Value x = g.input("x", f32({2, 8}));
  net.named("fc").linear(x, 4);
  EXPECT_TRUE(says(complaint_of([&] { net.named("fc").linear(x, 4); }), "'fc'"));
}

TEST(Names, TwoNetsShareTheirParameters) {
  Graph g;
  const Value x = g.input("x", f32({2, 8})), y = g.input("y", f32({3, 8}));
  Net first(g), second(g);
  first.linear(x, 4);
  second.linear(y, 4);
  EXPECT_EQ(parameter_names(g), (std::vector<std::string>{"linear.weight", "linear.bias"}));
}

TEST(Parameters, BiasesAndNormalisationDoNotDecay) {
  Graph g;
  Net net(g);
  net.batch_norm(net.conv2d(g.input("x", f32({2, 3, 8, 8})), 4, {.padding = 1}));
  net.layer_norm(net.linear(g.input("y", f32({2, 3})), 4, {.weight_norm = true}));
  for (const Parameter& p : g.parameters())
    EXPECT_EQ(p.decays, p.name.ends_with("conv.weight") || p.name.ends_with("weight_v")) << p.name;
}

TEST(Parameters, StartAsInPyTorchOrAsAsked) {
  Graph g;
  Net net(g);
  const Value x = g.input("x", f32({2, 3, 8, 8}));
  net.named("a").conv2d(x, 4, {.kernel = 5});
  net.named("b").conv2d(x, 4, {.kernel = 5, .init = he_normal()});
  net.use_init(normal(0.02f));
  net.named("c").linear(x, 4);
  auto init = [&](const std::string& name) {
    for (const Parameter& p : g.parameters())
      if (p.name == name) return p.init;
    ADD_FAILURE() << name;
    return Init{};
  };
  EXPECT_EQ(init("a.weight").kind, Init::Kind::uniform);
  EXPECT_FLOAT_EQ(init("a.weight").value, 1 / std::sqrt(75.f));
  EXPECT_FLOAT_EQ(init("a.bias").value, 1 / std::sqrt(75.f));
  EXPECT_EQ(init("b.weight").kind, Init::Kind::he_normal);
  EXPECT_EQ(init("b.weight").fan_in, 75);
  EXPECT_EQ(init("b.weight").fan_out, 100);
  EXPECT_EQ(init("b.bias").value, 0);
  EXPECT_EQ(init("c.weight").kind, Init::Kind::normal);
}

TEST(Parameters, HavePyTorchsCounts) {
  auto count = [](auto&& build) {
    Graph g;
    Net net(g);
    build(net, g);
    return weights(g);
  };
  EXPECT_EQ(count([](Net& n, Graph& g) { n.linear(g.input("x", f32({2, 5})), 7); }), 42);
  EXPECT_EQ(count([](Net& n, Graph& g) { n.conv2d(g.input("x", f32({2, 6, 9, 9})), 4, {.groups = 2}); }), 112);
  EXPECT_EQ(count([](Net& n, Graph& g) { n.depthwise(g.input("x", f32({2, 6, 9, 9}))); }), 60);
  EXPECT_EQ(count([](Net& n, Graph& g) { n.batch_norm(g.input("x", f32({2, 6, 9, 9}))); }), 12);
  EXPECT_EQ(count([](Net& n, Graph& g) { n.lstm(g.input("x", f32({2, 3, 5})), 7); }), 4 * 7 * (5 + 7 + 2));
  EXPECT_EQ(count([](Net& n, Graph& g) {
              n.gru(g.input("x", f32({2, 3, 5})), 7, {.layers = 2});
            }),
            3 * 7 * (5 + 7 + 2) + 3 * 7 * (7 + 7 + 2));
  EXPECT_EQ(count([](Net& n, Graph& g) { n.rnn(g.input("x", f32({2, 3, 5})), 7); }), 7 * (5 + 7 + 2));
  EXPECT_EQ(count([](Net& n, Graph& g) { n.attention(g.input("x", f32({2, 3, 8})), {.heads = 2}); }), 4 * 8 * 8 + 32);
  EXPECT_EQ(count([](Net& n, Graph& g) { n.embedding(g.input("x", i32({2, 3})), 11, 4); }), 44);
}

TEST(WeightNorm, StartsWithTheWeightsLength) {
  Graph g(false);
  Net net(g);
  const Value x = g.input("x", f32({1, 400}));
  g.set_output("plain", net.linear(x, 300, {.bias = false}));
  g.set_output("normed", net.linear(x, 300, {.bias = false, .weight_norm = true}));
  test::ModelMemory memory({&g});
  test::GraphRunner runner(g, memory);
  std::fill(runner.input<float>("x").begin(), runner.input<float>("x").end(), 1.f);
  runner.run();
  double squares[2] = {0, 0};
  for (float v : runner.output("plain")) squares[0] += v * v;
  for (float v : runner.output("normed")) squares[1] += v * v;
  EXPECT_NEAR(squares[1] / squares[0], 1, 0.3);
}

TEST(Upsample, RepeatsPixels) {
  Graph g(false);
  Net net(g);
  g.set_output("y", net.upsample(g.input("x", f32({1, 2, 2, 2})), 3));
  test::ModelMemory memory({&g});
  test::GraphRunner runner(g, memory);
  for (std::size_t i = 0; i < 8; ++i) runner.input<float>("x")[i] = static_cast<float>(i);
  runner.run();
  const auto y = runner.output("y");
  ASSERT_EQ(y.size(), 72u);
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t h = 0; h < 6; ++h)
      for (std::size_t w = 0; w < 6; ++w)
        EXPECT_EQ(y[c * 36 + h * 6 + w], static_cast<float>(c * 4 + h / 3 * 2 + w / 3));
}

TEST(Carry, StateFlowsIntoTheNextStepAndEqualsOneLongSequence) {
  for (int kind = 0; kind < 3; ++kind) {
    auto build = [&](Graph& g, std::int64_t time, bool carry) {
      Net net(g);
      const Value x = g.input("x", f32({2, time, 3}));
      const RecurrentOptions o{.layers = 2, .carry = carry};
      const Sequence s = kind == 0 ? net.rnn(x, 4, o) : kind == 1 ? net.lstm(x, 4, o) : net.gru(x, 4, o);
      g.set_output("last", s.last);
    };
    Graph whole(false), half(false);
    build(whole, 6, false);
    build(half, 3, true);
    ASSERT_EQ(half.carries().size(), kind == 1 ? 4u : 2u);
    test::ModelMemory memory({&whole, &half});
    test::GraphRunner long_run(whole, memory), short_run(half, memory);
    std::vector<float> x(2 * 6 * 3);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 11) / 11 - 0.5f;
    std::copy(x.begin(), x.end(), long_run.input<float>("x").begin());
    long_run.run();
    std::vector<float> found;
    for (int step = 0; step < 2; ++step) {
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t i = 0; i < 9; ++i)
          short_run.input<float>("x")[b * 9 + i] = x[b * 18 + static_cast<std::size_t>(step) * 9 + i];
      short_run.run();
      found = short_run.output("last");
      for (const auto& slot : short_run.executor().carries())
        std::copy(slot.to.begin(), slot.to.end(), short_run.input<std::byte>(slot.name).begin());
    }
    const auto expected = long_run.output("last");
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << kind;
  }
}

// Each mistake: one message with the layer's name and both shapes (or the numbers that clash).
TEST(Mistakes, NameTheLayerAndBothShapes) {
  struct Mistake {
    std::function<void(Net&, Graph&)> build;
    std::vector<std::string> parts;
  };
  const std::vector<Mistake> mistakes = {
      {[](Net& n, Graph& g) {
         n.named("conv1").conv2d(g.input("x", f32({4, 100})), 6);
       },
       {"layer 'conv1' (conv2d)", "[N, C, H, W]", "[4, 100]"}},
      {[](Net& n, Graph& g) {
         n.named("conv1").conv2d(g.input("x", f32({4, 1, 3, 3})), 6, {.kernel = 5});
       },
       {"layer 'conv1' (conv2d)", "[4, 1, 3, 3]", "[6, 1, 5, 5]"}},
      {[](Net& n, Graph& g) {
         n.named("conv1").conv2d(g.input("x", f32({4, 3, 9, 9})), 6, {.groups = 2});
       },
       {"layer 'conv1' (conv2d)", "2 groups", "[4, 3, 9, 9]"}},
      {[](Net& n, Graph& g) {
         n.named("pool1").max_pool(g.input("x", f32({4, 3, 2, 2})), 3);
       },
       {"layer 'pool1' (max_pool)", "[4, 3, 2, 2]", "3x3"}},
      {[](Net& n, Graph& g) {
         n.named("sum").add(g.input("x", f32({4, 3})), g.input("y", f32({4, 5})));
       },
       {"layer 'sum' (add)", "[4, 3]", "[4, 5]"}},
      {[](Net& n, Graph& g) {
         n.named("cat").concat({g.input("x", f32({4, 3, 8, 8})), g.input("y", f32({4, 3, 7, 8}))});
       },
       {"layer 'cat' (concat)", "[4, 3, 8, 8]", "[4, 3, 7, 8]"}},
      {[](Net& n, Graph& g) {
         n.named("cell").lstm(g.input("x", f32({4, 3})), 8);
       },
       {"layer 'cell' (lstm)", "[batch, time, features]", "[4, 3]"}},
      {[](Net& n, Graph& g) {
         n.named("att").attention(g.input("x", f32({4, 3, 10})), {.heads = 4});
       },
       {"layer 'att' (attention)", "4 heads", "[4, 3, 10]"}},
      {[](Net& n, Graph& g) {
         n.named("shape").reshape(g.input("x", f32({4, 10})), {3, 4});
       },
       {"layer 'shape' (reshape)", "[4, 10]", "[4, 3, 4]"}},
      {[](Net& n, Graph& g) {
         n.named("loss").mse(g.input("x", f32({4, 10})), g.input("y", f32({4, 9})));
       },
       {"layer 'loss' (mse", "[4, 10]", "[4, 9]"}},
      {[](Net& n, Graph& g) {
         n.named("loss").cross_entropy(g.input("x", f32({4, 10})), g.input("y", i32({5})));
       },
       {"layer 'loss' (cross_entropy)", "[4, 10]", "[5]"}},
      {[](Net& n, Graph& g) {
         const Value table = n.named("tok").table(10, 8);
         n.named("head").scores(g.input("x", f32({4, 3, 9})), table);
       },
       {"layer 'head' (linear)", "[4, 3, 9]", "[10, 8]"}},
      {[](Net& n, Graph& g) {
         n.named("bn").batch_norm(g.input("x", f32({4, 3, 9, 2, 2})));
       },
       {"layer 'bn' (batch_norm)", "[N, C, H, W]", "[4, 3, 9, 2, 2]"}},
      {[](Net& n, Graph& g) {
         n.named("norm").group_norm(g.input("x", f32({4, 6, 9})), 4);
       },
       {"layer 'norm' (group_norm)", "4 groups", "[4, 6, 9]"}},
      {[](Net& n, Graph& g) {
         n.named("up").conv_transpose2d(g.input("x", f32({4, 6, 9, 9})), 4, {.output_padding = 1});
       },
       {"layer 'up' (conv_transpose2d)", "stride"}},
      {[](Net& n, Graph& g) {
         n.named("look").cross_attention(g.input("x", f32({4, 6, 9})), g.input("y", f32({4, 5, 7})), {.heads = 2});
       },
       {"layer 'look' (cross_attention)", "2 heads", "[4, 6, 9]"}},
      {[](Net& n, Graph& g) {
         n.named("read").lstm(g.input("x", f32({4, 6, 9})), 3, {.carry = true, .bidirectional = true});
       },
       {"layer 'read' (lstm)", "bidirectional"}},
      {[](Net& n, Graph& g) {
         n.named("drop").dropout(g.input("x", f32({4, 3})), 1.5f);
       },
       {"layer 'drop' (dropout)", "1.5"}},
      {[](Net& n, Graph& g) {
         const auto block = n.block("block2");
         n.named("conv1").conv2d(g.input("x", f32({4, 3})), 6);
       },
       {"layer 'block2.conv1' (conv2d)", "[4, 3]"}},
  };
  for (const Mistake& mistake : mistakes) {
    Graph g;
    Net net(g);
    const std::string text = complaint_of([&] { mistake.build(net, g); });
    EXPECT_FALSE(text.empty());
    for (const std::string& part : mistake.parts) EXPECT_TRUE(says(text, part));
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(text.find("layer '", 1), std::string::npos) << text;  // named once
  }
}

}  // namespace
}  // namespace echelon::nn
