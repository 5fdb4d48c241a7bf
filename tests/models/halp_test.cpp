// HALP's parts alive: where the centre is, what the full gradient becomes, that SVRG's gradient has no variance at the
// centre, and that offsets have few bits whose range follows the full gradient.
#include "models/wrappers/halp.h"

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

constexpr std::uint32_t gather = 3, period = 8;

std::unique_ptr<Model> small_network(const char* quantise = nullptr) {
  const InputSpec inputs{.inputs = {{"x", f32({6})}}, .target = {"label", i32({})}, .classes = 3};
  const std::string toml = std::string("hidden = [5]\n") +
                           (quantise ? fmt::format("quantise = {{ scheme = \"halp\", {} }}\n", quantise) : "");
  return make_model("mlp", inputs, parse_toml(toml, "test"));
}

// One shard that does what the trainer does: runs steps, moves the statistics, descends.
struct Machine {
  static constexpr std::int64_t slice = 4;
  explicit Machine(const char* quantise) : model(small_network(quantise)), graph(model->training(slice)[0].graph) {}

  void draw(std::uint32_t batch) {
    const Stream s({.seed = 7, .step = batch});
    auto x = runner.input<float>("x");
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = s.normal(i);
    auto label = runner.input<std::int32_t>("label");
    for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<std::int32_t>(s.below(3, 100 + i));
  }
  void run(std::uint32_t step, std::uint32_t batch) {
    draw(batch);
    runner.run({.seed = 1, .step = step, .share = 1, .loss_scale = 1.0f / slice});
  }
  void move(float lr) {
    for (const auto& e : memory.table.entries()) {
      auto p = memory.parameter(e.parameter.name), d = memory.contribution(e.parameter.name);
      for (std::size_t i = 0; i < p.size(); ++i)
        p[i] = e.parameter.kind == Parameter::Kind::statistic ? d[i] : p[i] - lr * d[i];
    }
  }
  std::vector<float> copy(const std::string& name) {
    const auto p = memory.parameter(name);
    return {p.begin(), p.end()};
  }

  std::unique_ptr<Model> model;
  Graph graph;
  test::ModelMemory memory{{&graph}};
  test::GraphRunner runner{graph, memory};
};

const char* settings = "weights_bits = 8, gather_steps = 3, period_steps = 8";

// The plain network's gradient for the same batch and weights.
std::vector<float> plain_gradient(Machine& at, const std::string& name, std::uint32_t batch) {
  const auto model = small_network();
  const Graph graph = model->training(Machine::slice)[0].graph;
  test::ModelMemory memory({&graph});
  test::GraphRunner runner(graph, memory);
  for (const auto& e : memory.table.entries()) {
    const auto from = at.memory.parameter(e.parameter.name);
    std::copy(from.begin(), from.end(), memory.parameter(e.parameter.name).begin());
  }
  at.draw(batch);
  std::ranges::copy(at.runner.input<float>("x"), runner.input<float>("x").begin());
  std::ranges::copy(at.runner.input<std::int32_t>("label"), runner.input<std::int32_t>("label").begin());
  runner.run({.seed = 1, .loss_scale = 1.0f / Machine::slice});
  const auto d = memory.contribution(name);
  return {d.begin(), d.end()};
}

TEST(Halp, CentreAndFullGradientAreThoseOfTheWeightsThatRest) {
  Machine m(settings);
  const std::string name = "fc1.weight";
  const auto start = m.copy(name);
  std::vector<double> mean(start.size());
  for (std::uint32_t step = 0; step <= gather; ++step) {
    m.run(step, step);
    m.move(0.5f);
    EXPECT_EQ(m.copy(name), start) << "weights rest while the full gradient is gathered";
    EXPECT_EQ(m.copy(name + ".centre"), start);
    if (step == 0) continue;
    const auto g = plain_gradient(m, name, step);
    for (std::size_t i = 0; i < g.size(); ++i) mean[i] += static_cast<double>(g[i]) / gather;
  }
  const auto full = m.copy(name + ".full_gradient");
  for (std::size_t i = 0; i < full.size(); ++i) EXPECT_NEAR(full[i], mean[i], 1e-6);
}

TEST(Halp, AtTheCentreEveryBatchGivesTheFullGradient) {
  Machine m(settings);
  for (std::uint32_t step = 0; step <= gather; ++step) m.run(step, step), m.move(0.5f);
  const auto full = m.copy("fc1.weight.full_gradient");
  for (std::uint32_t batch : {10u, 11u, 12u}) {  // no variance left
    m.run(gather + 1, batch);
    const auto d = m.memory.contribution("fc1.weight");
    for (std::size_t i = 0; i < full.size(); ++i) ASSERT_NEAR(d[i], full[i], 1e-6) << "batch " << batch;
  }
}

TEST(Halp, AwayFromTheCentreItIsTheDifferenceOfTwoGradientsAndTheFullOne) {
  Machine m("weights_bits = 24, mu = 0.001, gather_steps = 3, period_steps = 8");  // so fine that nothing is rounded
  for (std::uint32_t step = 0; step <= gather; ++step) m.run(step, step), m.move(0.5f);
  const std::string name = "fc1.weight";
  const auto at_centre = plain_gradient(m, name, 20);
  m.run(gather + 1, 19), m.move(0.1f);
  const auto full = m.copy(name + ".full_gradient"), centre = m.copy(name + ".centre");
  ASSERT_NE(m.copy(name), centre);
  const auto at_weights = plain_gradient(m, name, 20);
  m.run(gather + 2, 20);
  const auto d = m.memory.contribution(name);
  for (std::size_t i = 0; i < d.size(); ++i)
    ASSERT_NEAR(d[i], at_weights[i] - at_centre[i] + full[i], 2e-4) << "element " << i;
}

TEST(Halp, OffsetsHaveFewBitsAndTheirRangeFollowsTheFullGradient) {
  const auto spread = [](float size) {
    Graph g;
    const ops::Centred c{g.parameter({.name = "w", .shape = {64}}), g.parameter({.name = "c", .shape = {64}}),
                         g.parameter({.name = "f", .shape = {64}})};
    g.set_output("y", ops::at_offset(g, c, {.bits = 3, .mu = 2, .gather = gather, .period = period}));
    test::ModelMemory memory({&g});
    const Stream s({.seed = 3});
    for (std::size_t i = 0; i < 64; ++i) {
      memory.parameter("c")[i] = 1;
      memory.parameter("w")[i] = 1 + 3 * s.normal(i);
      memory.parameter("f")[i] = size / 8;  // 64 of them have the norm `size`
    }
    test::GraphRunner runner(g, memory);
    runner.run({.step = gather + 1});
    const auto y = runner.output("y");
    const std::set<float> values(y.begin(), y.end());
    EXPECT_LE(values.size(), 7u);
    EXPECT_GE(values.size(), 5u);
    return *values.rbegin() - *values.begin();
  };
  EXPECT_NEAR(spread(4), 4, 1e-5);  // from -|full| / mu to |full| / mu
  EXPECT_NEAR(spread(1), 1, 1e-5);
}

TEST(Halp, BeginsANewPeriodWithANewCentre) {
  Machine m(settings);
  for (std::uint32_t step = 0; step < period; ++step) m.run(step, step), m.move(0.5f);
  const auto weights = m.copy("fc1.weight"), old = m.copy("fc1.weight.centre");
  EXPECT_NE(weights, old);
  m.run(period, 30), m.move(0.5f);
  EXPECT_EQ(m.copy("fc1.weight.centre"), weights);
  for (float f : m.copy("fc1.weight.full_gradient")) EXPECT_EQ(f, 0);
}

TEST(Halp, RefusesWhatMakesNoSense) {
  const auto complaint = [](const char* model, const char* quantise) {
    return test::complaint_of([&] {
      make_model(model, find_model(model).usual_inputs(),
                 parse_toml(fmt::format("quantise = {{ scheme = \"halp\", {} }}", quantise), "test"));
    });
  };
  EXPECT_TRUE(test::says(complaint("gan", "mu = 1"), "one phase"));
  EXPECT_TRUE(test::says(complaint("lenet5", "gather_steps = 50, period_steps = 51"), "no step to move in"));
  EXPECT_TRUE(test::says(complaint("lenet5", "activations_bits = 8"), "activations_bits"));
}

}  // namespace
}  // namespace echelon::models
