// Gradients through whole small networks that hold every layer, against finite differences of the loss.
#include "graph/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "nn/layers.h"
#include "tests/support/graph_runner.h"

namespace echelon::nn {
namespace {

constexpr StepContext step{.seed = 3, .step = 5, .shard = 1};

// Fills every input with fixed noise; ids stay below `ids`.
void fill_inputs(test::GraphRunner& runner, const Graph& graph, int ids) {
  for (const auto& input : graph.inputs()) {
    const Stream noise({7, 0, 0, stream_layer(input.name.c_str())});
    if (graph.type(input.value).dtype == DType::i32) {
      std::uint64_t i = 0;
      for (auto& v : runner.input<std::int32_t>(input.name))
        v = static_cast<std::int32_t>(noise.below(static_cast<std::uint32_t>(ids), i++));
    } else {
      std::uint64_t i = 0;
      for (float& v : runner.input<float>(input.name)) v = noise.uniform(i++) * 2 - 1;
    }
  }
}

// For each weight tensor, moves it a little along its own gradient and along a random direction: the loss must change
// by as much as the gradient says.
void check_gradients(Graph graph, int ids = 2) {
  differentiate(graph, graph.outputs().at("loss"));
  test::ModelMemory memory({&graph});
  for (auto& v : memory.parameters.as<float>()) v += 0.01f;  // no weight is exactly zero, no bias either
  test::GraphRunner runner(graph, memory);
  fill_inputs(runner, graph, ids);
  auto loss = [&] {
    runner.run(step);
    return static_cast<double>(runner.scalar("loss"));
  };
  ASSERT_TRUE(std::isfinite(loss()));
  int moved = 0;
  for (const auto& entry : memory.table.entries()) {
    if (entry.parameter.kind != Parameter::Kind::weight) continue;
    const std::string& name = entry.parameter.name;
    loss();
    const auto span = memory.contribution(name);
    const std::vector<float> gradient(span.begin(), span.end());
    const auto values = memory.parameter(name);
    const std::vector<float> before(values.begin(), values.end());
    double norm = 0;
    for (float g : gradient) norm += static_cast<double>(g) * g;
    norm = std::sqrt(norm);
    if (norm > 1e-3) ++moved;
    const Stream noise({11, 0, 0, stream_layer(name.c_str())});
    for (bool random : {false, true}) {
      std::vector<double> direction(gradient.size());
      double length = 0, expected = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        direction[i] = random || norm < 1e-6 ? noise.normal(i) : gradient[i];
        length += direction[i] * direction[i];
      }
      for (std::size_t i = 0; i < direction.size(); ++i) expected += direction[i] / std::sqrt(length) * gradient[i];
      const double h = 1e-2;
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        for (std::size_t i = 0; i < before.size(); ++i)
          values[i] = static_cast<float>(before[i] + (side == 0 ? -h : h) * direction[i] / std::sqrt(length));
        ends[side] = loss();
      }
      std::copy(before.begin(), before.end(), values.begin());
      EXPECT_NEAR((ends[1] - ends[0]) / (2 * h), expected, 0.02 * norm + 2e-3) << name << (random ? " (random)" : "");
    }
  }
  EXPECT_GT(moved, 0);
}

TEST(Gradients, ImageLayers) {
  Graph g;
  Net net(g);
  Value x = g.input("x", f32({3, 3, 9, 9}));
  x = net.elu(net.batch_norm(net.conv2d(x, 8, {.kernel = 3, .padding = 1})));
  x = net.gelu(net.conv2d(x, 8, {.kernel = {3, 1}, .padding = {1, 0}, .groups = 2, .weight_norm = true}));
  const Value narrow = net.tanh(net.depthwise(x, {.stride = 2, .padding = 2, .dilation = 2}));
  x = net.concat({net.avg_pool(x, 3, {.stride = 2, .padding = 1}), narrow, net.max_pool(x, 2, {.padding = 1})});
  x = net.local_response_norm(x, {.size = 3, .alpha = 0.5f});
  x = net.residual(x, [&](Value v) { return net.softplus(net.conv2d(v, 24, {.kernel = 1, .init = he_normal()})); });
  x = net.conv2d(net.upsample(x, 2), 5);
  x = net.concat({net.global_avg_pool(x), net.linear(net.flatten(x), 4)});
  x = net.batch_norm(net.sigmoid(net.linear(x, 6, {.weight_norm = true})));
  const auto result = net.cross_entropy(net.linear(net.dropout(x, 0.3f), 4), g.input("y", i32({3})), 0.1f);
  g.set_output("loss", result.loss);
  check_gradients(std::move(g), 4);
}

TEST(Gradients, SequenceLayers) {
  Graph g;
  Net net(g);
  const Value tokens = g.input("tokens", i32({2, 6}));
  const Value table = net.named("tok").table(7, 12);
  Value x = net.positions(net.embedding(tokens, table));
  x = net.residual(x, [&](Value v) { return net.attention(net.layer_norm(v), {.heads = 3, .causal = true}); });
  x = net.residual(x, [&](Value v) { return net.attention(net.layer_norm(v), {.heads = 2}); });
  x = net.lstm(x, 9, {.layers = 2, .dropout = 0.2f}).all;
  x = net.gru(x, 8).all;
  const Sequence last = net.rnn(x, 12);
  const Value scores = net.scores(last.all, table);  // tied: the table gets gradients from both ends
  const auto result = net.cross_entropy(scores, g.input("targets", i32({2, 6})));
  const Value mixed = net.mse(net.softmax(net.linear(last.last, 5)), g.input("wanted", f32({2, 5})));
  g.set_output("loss", net.add(result.loss, mixed));
  check_gradients(std::move(g), 7);
}

TEST(Gradients, CarriedState) {
  Graph g;
  Net net(g);
  Value x = net.lstm(g.input("x", f32({2, 3, 4})), 5, {.carry = true}).all;
  x = net.gru(x, 5, {.carry = true}).all;
  x = net.rnn(x, 5, {.carry = true}).last;
  g.set_output("loss", net.mse(x, g.input("y", f32({2, 5}))));
  check_gradients(std::move(g));
}

TEST(Gradients, LossesAndKinks) {
  Graph g;
  Net net(g);
  const Value x = net.leaky_relu(net.relu(net.linear(g.input("x", f32({3, 4})), 16)), 0.2f);
  const Value y = g.input("y", f32({3, 5}));
  std::vector<Value> losses;
  losses.push_back(net.l1(net.linear(x, 5), y));
  losses.push_back(net.huber(net.linear(x, 5), y, 0.3f));
  losses.push_back(net.bce_with_logits(net.linear(x, 5), y));
  losses.push_back(net.mse(net.linear(x, 5), y));
  losses.push_back(net.quantile_loss(net.linear(x, 15), y, {0.1f, 0.5f, 0.8f}));
  const Value classes = g.input("classes", i32({3}));
  losses.push_back(net.weighted_cross_entropy(net.linear(x, 4), classes, 0.1f, {{1, 0.5f, 2, 3}, 0}).loss);
  losses.push_back(net.weighted_cross_entropy(net.linear(x, 4), classes, 0, {{}, 1.5f}).loss);
  g.set_output("loss", net.add(losses));
  check_gradients(std::move(g));
}

}  // namespace
}  // namespace echelon::nn
