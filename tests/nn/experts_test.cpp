// The mixture of experts: gradients through the routes, what each row gets, and the loss that spreads the rows.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "graph/ops/experts.h"
#include "graph/ops/softmax.h"
#include "nn/layers.h"
#include "tests/graph/op_check.h"
#include "tests/support/graph_runner.h"

namespace echelon::nn {
namespace {

using ExpertValues = std::vector<Value>;

TEST(Moe, ExpertLinearIsALinearLayerForEachExpert) {
  test::check_gradient({{{3, 4, 5}}, {{3, 2, 5}}, {{3, 2}}},
                       [](Graph& g, const ExpertValues& p) { return ops::expert_linear(g, p[0], p[1], p[2]); });
}

TEST(Moe, GradientsFlowThroughGatesAndExperts) {
  // Probabilities far apart, so that a small step changes no route.
  for (int top : {1, 2})
    for (std::int64_t capacity : {2, 9})
      test::check_gradient({{{9, 4}, 3}, {{9, 5}}}, [&](Graph& g, const ExpertValues& p) {
        const ops::Routes routes = ops::route(g, ops::softmax(g, p[0]), top, capacity);
        const Value sent = ops::dispatch(g, p[1], routes.slots, 4, capacity);
        return ops::combine(g, ops::tanh(g, sent), routes.slots, routes.gates);
      });
}

// A layer whose input is a parameter and whose router's weights are given.
struct MoeRun {
  explicit MoeRun(const MoeOptions& o, float router = 1) : graph(true) {
    Net net(graph);
    const Value x = graph.parameter({.name = "x", .shape = {2, 8, 6}, .init = normal(1)});
    y = net.moe(x, o);
    graph.set_output("y", y);
    graph.set_output("balance", net.extra_losses().at(0));
    memory = std::make_unique<test::ModelMemory>(std::vector<const Graph*>{&graph});
    for (float& w : memory->parameter("moe.router.weight")) w *= router;
    runner = std::make_unique<test::GraphRunner>(graph, *memory);
    runner->run();
  }
  Graph graph;
  Value y;
  std::unique_ptr<test::ModelMemory> memory;
  std::unique_ptr<test::GraphRunner> runner;
};

TEST(Moe, WithOneExpertIsItsNetwork) {
  MoeRun run({.experts = 1, .hidden = 10, .top = 1, .balance = 1});
  Graph plain;
  Net net(plain);
  const Value x = plain.parameter({.name = "x", .shape = {2, 8, 6}});
  plain.set_output("y", net.named("down").linear(net.gelu(net.named("up").linear(x, 10)), 6));
  test::ModelMemory memory({&plain});
  for (const auto& [to, from] : std::map<std::string, std::string>{{"x", "x"},
                                                                   {"up.weight", "moe.up.weight"},
                                                                   {"up.bias", "moe.up.bias"},
                                                                   {"down.weight", "moe.down.weight"},
                                                                   {"down.bias", "moe.down.bias"}})
    std::ranges::copy(run.memory->parameter(from), memory.parameter(to).begin());
  test::GraphRunner runner(plain, memory);
  runner.run();
  const auto a = run.runner->output("y"), b = runner.output("y");
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5);
  EXPECT_NEAR(run.runner->scalar("balance"), 16, 1e-4);  // one for each row
}

TEST(Moe, TheBalanceLossIsLeastWhenTheRowsAreSpread) {
  const MoeOptions o{.experts = 4, .hidden = 8, .balance = 1};
  EXPECT_NEAR(MoeRun(o, 0).runner->scalar("balance"), 16, 1e-4);  // all probabilities alike
  EXPECT_GT(MoeRun(o, 30).runner->scalar("balance"), 17);         // each row is sure of its expert
}

TEST(Moe, RowsBeyondAnExpertsRoomGiveZeros) {
  MoeRun run({.experts = 4, .hidden = 8, .top = 1, .capacity = 1, .balance = 1}, 0);  // all want the first expert
  const auto y = run.runner->output("y");
  for (std::size_t r = 0; r < 16; ++r) {
    double norm = 0;
    for (std::size_t c = 0; c < 6; ++c) norm += std::abs(y[r * 6 + c]);
    EXPECT_EQ(norm > 0, r < 4) << r;
  }
}

TEST(Moe, RefusesWhatCannotBe) {
  Graph g;
  Net net(g);
  const Value x = g.input("x", f32({4, 6}));
  EXPECT_THROW(net.moe(x, {.experts = 1, .top = 2}), BadInput);
  EXPECT_THROW(net.moe(x, {.experts = 4, .top = 3}), BadInput);
  EXPECT_THROW(net.moe(g.input("row", f32({6})), {}), BadInput);
}

}  // namespace
}  // namespace echelon::nn
