// Quantisers by their definitions: what forward gives, and that backward is the straight-through gradient.
#include "graph/ops/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/ops/dropout.h"
#include "graph/ops/linear.h"
#include "graph/ops/pool.h"
#include "graph/ops/shape.h"
#include "graph/passes/quantise.h"
#include "tests/graph/op_check.h"

namespace echelon {
namespace {

using test::OpRun;
using Values = std::vector<Value>;
using Numbers = std::vector<double>;

double mean_size(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += std::abs(static_cast<double>(v));
  return sum / static_cast<double>(x.size());
}
double peak(std::span<const float> x) {
  double most = 0;
  for (float v : x) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}
double sign(double x) { return x < 0 ? -1 : 1; }

// The paper's formula in double, and the share of dy that should arrive at x, element by element.
struct Definition {
  test::Build build;
  std::function<double(double x, std::span<const float> all)> forward, passes;
};

const auto everything_passes = [](double, std::span<const float>) { return 1.0; };

std::map<std::string, Definition> definitions() {
  std::map<std::string, Definition> d;
  for (int bits : {2, 4, 8})
    for (bool keep : {false, true}) {
      const double levels = std::pow(2.0, bits) - 1;
      auto greatest = [](std::span<const float> all) {
        double most = 0;
        for (float v : all) most = std::max(most, std::abs(std::tanh(static_cast<double>(v))));
        return most;
      };
      d[fmt::format("dorefa weights, {} bits{}", bits, keep ? ", scale kept" : "")] = {
          [=](Graph& g, const Values& p) { return ops::dorefa_weights(g, p[0], bits, keep); },
          [=](double x, std::span<const float> all) {
            const double m = greatest(all), in_unit = std::tanh(x) / (2 * m) + 0.5;
            return (keep ? m : 1) * (2 * std::nearbyint(levels * in_unit) / levels - 1);
          },
          [=](double x, std::span<const float> all) {
            return (1 - std::tanh(x) * std::tanh(x)) / (keep ? 1 : greatest(all));
          }};
    }
  d["dorefa weights, 1 bit"] = {[](Graph& g, const Values& p) { return ops::dorefa_weights(g, p[0], 1, false); },
                                [](double x, std::span<const float> all) { return sign(x) * mean_size(all); },
                                everything_passes};
  for (int bits : {1, 2, 8}) {
    const double levels = std::pow(2.0, bits) - 1;
    d[fmt::format("dorefa activations, {} bits", bits)] = {
        [=](Graph& g, const Values& p) { return ops::dorefa_activations(g, p[0], bits); },
        [=](double x, std::span<const float>) { return std::nearbyint(levels * std::clamp(x, 0.0, 1.0)) / levels; },
        [](double x, std::span<const float>) { return x >= 0 && x <= 1 ? 1.0 : 0.0; }};
  }
  const auto inside = [](double x, std::span<const float>) { return std::abs(x) <= 1 ? 1.0 : 0.0; };
  d["binary weights"] = {[](Graph& g, const Values& p) { return ops::binary_weights(g, p[0], false); },
                         [](double x, std::span<const float>) { return sign(x); }, inside};
  d["binary weights, scale kept"] = {[](Graph& g, const Values& p) { return ops::binary_weights(g, p[0], true); },
                                     [](double x, std::span<const float> all) { return sign(x) * mean_size(all); },
                                     inside};
  d["binary activations"] = {[](Graph& g, const Values& p) { return ops::binary_activations(g, p[0]); },
                             [](double x, std::span<const float>) { return sign(x); }, inside};
  d["ternary weights"] = {[](Graph& g, const Values& p) { return ops::ternary_weights(g, p[0]); },
                          [](double x, std::span<const float> all) {
                            const double threshold = 0.7 * mean_size(all);
                            std::vector<float> kept;
                            for (float v : all)
                              if (std::abs(static_cast<double>(v)) > threshold) kept.push_back(v);
                            return std::abs(x) > threshold ? sign(x) * mean_size(kept) : 0;
                          },
                          everything_passes};
  for (int bits : {6, 16}) {
    d[fmt::format("shared exponent, {} bits", bits)] = {
        [=](Graph& g, const Values& p) { return ops::shared_exponent(g, p[0], bits); },
        [=](double x, std::span<const float> all) {
          const double step = std::pow(2.0, std::floor(std::log2(peak(all))) + 1 - (bits - 1));
          return step * std::min(std::nearbyint(x / step), std::pow(2.0, bits - 1) - 1);
        },
        everything_passes};
  }
  return d;
}

TEST(QuantiseOps, ForwardIsThePapersFormulaAndBackwardGoesStraightThrough) {
  for (const auto& [name, definition] : definitions())
    for (std::int64_t n : {1, 7, 500}) {
      SCOPED_TRACE(name + ", n = " + std::to_string(n));
      OpRun run({{{n, 3}}}, definition.build);
      const auto x = run.parameter(0);
      run.run();
      const auto y = run.output();
      const Stream target({.seed = 12});  // as OpRun has it
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double at = static_cast<double>(x[i]), want = definition.forward(at, x);
        ASSERT_NEAR(y[i], want, 1e-5 * std::abs(want) + 1e-6) << "element " << i << " = " << x[i];
        // The loss is the sum of squared distances (y - target)^2.
        const double dy = 2 * (static_cast<double>(y[i]) - static_cast<double>(target.normal(i)));
        const double dx = dy * definition.passes(at, x);
        ASSERT_NEAR(run.gradient(0)[i], dx, 1e-4 * std::abs(dx) + 1e-5) << "element " << i << " = " << x[i];
      }
    }
}

TEST(QuantiseOps, PassesDoNotChangeTheNumbers) {
  for (const auto& [name, definition] : definitions()) {
    SCOPED_TRACE(name);
    OpRun run({{{9, 5}}}, definition.build);
    OpRun bare({{{9, 5}}}, definition.build, {.fuse = false, .choose_layouts = false, .reuse_memory = false});
    EXPECT_EQ(run.run(), bare.run());
    for (std::size_t i = 0; i < 45; ++i) ASSERT_EQ(run.gradient(0)[i], bare.gradient(0)[i]);
  }
}

TEST(QuantiseOps, FixedPointRoundsByChanceInTrainingAndToTheNearestOutside) {
  const auto build = [](Graph& g, const Values& p) { return ops::fixed_point(g, p[0], 6, 3, false); };
  const std::vector<test::Given> given{{{40, 40}, 2.0f}};
  OpRun training(given, build), outside(given, build, {}, false);
  training.run(), outside.run();
  const auto x = training.parameter(0);
  const auto by_chance = training.output(), nearest = outside.output();
  double error = 0, cut = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scaled = 8 * static_cast<double>(x[i]);  // steps of 1/8, from -32 to 31
    ASSERT_EQ(nearest[i], std::clamp(std::nearbyint(scaled), -32.0, 31.0) / 8);
    const double down = std::clamp(std::floor(scaled), -32.0, 31.0) / 8;
    const double up = std::clamp(std::ceil(scaled), -32.0, 31.0) / 8;
    ASSERT_TRUE(by_chance[i] == down || by_chance[i] == up) << x[i] << " became " << by_chance[i];
    const bool inside = scaled >= -32 && scaled <= 31;
    ASSERT_EQ(training.gradient(0)[i] != 0, inside) << x[i];
    if (inside) error += static_cast<double>(by_chance[i] - x[i]);
    cut += !inside;
  }
  EXPECT_GT(cut, 0);
  // The error of one number has at most half a step as its deviation.
  EXPECT_LT(std::abs(error / (1600 - cut)), 4 * (1.0 / 16) / std::sqrt(1600 - cut));
}

TEST(QuantiseOps, WeightsOfFewBitsHaveFewValues) {
  const auto distinct = [](const test::Build& build) {
    OpRun run({{{30, 40}}}, build);
    run.run();
    const auto y = run.output();
    return std::set<float>(y.begin(), y.end()).size();
  };
  EXPECT_EQ(distinct([](Graph& g, const Values& p) { return ops::dorefa_weights(g, p[0], 3, true); }), 8u);
  EXPECT_EQ(distinct([](Graph& g, const Values& p) { return ops::dorefa_activations(g, p[0], 2); }), 4u);
  EXPECT_EQ(distinct([](Graph& g, const Values& p) { return ops::ternary_weights(g, p[0]); }), 3u);
  EXPECT_EQ(distinct([](Graph& g, const Values& p) { return ops::binary_weights(g, p[0], true); }), 2u);
}

TEST(QuantiseOps, ZerosStayFinite) {
  for (const auto& [name, definition] : definitions()) {
    SCOPED_TRACE(name);
    OpRun run({{{4}, 0.0f}}, definition.build);
    run.run();
    for (float y : run.output()) EXPECT_TRUE(std::isfinite(y)) << y;
    for (float dx : run.gradient(0)) EXPECT_TRUE(std::isfinite(dx)) << dx;
  }
}

TEST(QuantiseOps, RefuseBitsThatCannotBe) {
  Graph g;
  const Value x = g.parameter({.name = "x", .shape = {3}});
  EXPECT_THROW(ops::dorefa_weights(g, x, 0, true), BadInput);
  EXPECT_THROW(ops::dorefa_activations(g, x, 25), BadInput);
  EXPECT_THROW(ops::shared_exponent(g, x, 1), BadInput);
  EXPECT_THROW(ops::fixed_point(g, x, 16, 65, true), BadInput);
}

// --- the pass ---

struct TwoLayers {
  Graph graph;
  Value input, hidden;
  // input -> first -> relu -> max pool -> dropout -> flatten -> second
  TwoLayers() {
    input = graph.input("x", f32({2, 6}));
    const Value first = graph.parameter({.name = "first", .shape = {16, 6}});
    const Value second = graph.parameter({.name = "second", .shape = {3, 4}});
    hidden = ops::linear(graph, input, first, {});
    Value x = ops::reshape(graph, ops::relu(graph, hidden), {2, 1, 4, 4});
    x = ops::max_pool(graph, x, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
    x = ops::dropout(graph, x, 0.5f);
    graph.set_output("y", ops::linear(graph, ops::flatten(graph, x), second, {}));
  }
};

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op->name() == op; }));
}

const Node& producer(const Graph& graph, Value v) {
  EXPECT_EQ(graph.info(v).source, ValueInfo::Source::node);
  return graph.nodes()[static_cast<std::size_t>(graph.info(v).producer)];
}

Quantisers binary() {
  return {.weights = [](Graph& g, Value w) { return ops::binary_weights(g, w, true); },
          .activations = ops::binary_activations};
}

TEST(QuantisePass, TakesWeightsAndActivationsOfEveryLayerButTheExemptOnes) {
  const TwoLayers net;
  EXPECT_EQ(layer_weights(net.graph), (std::vector<std::string>{"first", "second"}));
  Quantisers with = binary();
  EXPECT_EQ(count(quantise(net.graph, with), "binary"), 3);  // the network's own input is left
  with.network_input = true;
  EXPECT_EQ(count(quantise(net.graph, with), "binary"), 4);
  with.exempt = {"first"};
  const Graph second_only = quantise(net.graph, with);
  EXPECT_EQ(count(second_only, "binary"), 2);
  const Node& last = producer(second_only, second_only.outputs().at("y"));
  EXPECT_EQ(producer(second_only, last.in[1]).op->name(), "binary");
  with.weights = {};
  EXPECT_EQ(count(quantise(net.graph, with), "binary"), 1);
}

TEST(QuantisePass, SignsAreTakenBeforeTheReluAndDropoutComesAfter) {
  const TwoLayers net;
  Quantisers with = binary();
  with.skip_relu = true;
  const Graph graph = quantise(net.graph, with);
  // Backwards from the last layer: flatten is looked through or repeated, then dropout, then the sign of the pooled
  // numbers that never saw a ReLU.
  Value x = producer(graph, graph.outputs().at("y")).in[0];
  std::vector<std::string> way;
  while (graph.info(x).source == ValueInfo::Source::node) {
    const Node& node = producer(graph, x);
    if (node.op->name() == "linear") break;
    if (!node.op->is_view()) way.emplace_back(node.op->name());
    x = node.in[0];
  }
  EXPECT_EQ(way, (std::vector<std::string>{"dropout", "binary", "max_pool"}));
}

TEST(QuantisePass, AWeightThatTwoLayersShareIsQuantisedOnce) {
  Graph g;
  const Value w = g.parameter({.name = "w", .shape = {5, 5}});
  const Value x = g.input("x", f32({2, 5}));
  g.set_output("y", ops::linear(g, ops::relu(g, ops::linear(g, x, w, {})), w, {}));
  EXPECT_EQ(count(quantise(g, {.weights = ops::ternary_weights, .activations = {}}), "ternary"), 1);
}

TEST(QuantisePass, WithoutBackwardIsTheGraphBeforeItWasDifferentiated) {
  Graph g;
  const Value x = g.input("x", f32({2, 5})), target = g.input("target", f32({2, 5}));
  const Value w = g.parameter({.name = "w", .shape = {5, 5}});
  const Value loss = ops::distance_loss(g, ops::Distance::mse, ops::linear(g, x, w, {}), target);
  g.set_output("loss", loss);
  const std::string before = to_string(g);
  differentiate(g, loss);
  ASSERT_NE(to_string(g), before);
  const Graph again = without_backward(g);
  EXPECT_EQ(to_string(again), before);
  EXPECT_FALSE(again.contributions()[0]);
}

}  // namespace
}  // namespace echelon
