// Networks on graphs: over trees with all neighbours they compute what the papers' matrices do.

#include "models/networks/graph_network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/graph/neighbourhoods.h"
#include "models/zoo.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"

namespace echelon {
namespace {

using Rows = std::vector<std::vector<double>>;

data::NodeGraphPtr small_graph() {
  return data::make_communities({.nodes = 12, .classes = 3, .features = 4, .degree = 3});
}

Rows features_of(const data::NodeGraph& graph) {
  Rows rows;
  for (std::uint32_t v = 0; v < graph.nodes(); ++v) rows.emplace_back(graph.row(v).begin(), graph.row(v).end());
  return rows;
}

// x W^T + b
Rows linear(const Rows& x, std::span<const float> weight, std::span<const float> bias, std::size_t out) {
  Rows y(x.size(), std::vector<double>(out));
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t o = 0; o < out; ++o) {
      y[r][o] = bias.empty() ? 0 : static_cast<double>(bias[o]);
      for (std::size_t i = 0; i < x[r].size(); ++i)
        y[r][o] += x[r][i] * static_cast<double>(weight[o * x[r].size() + i]);
    }
  return y;
}

// Every node's scores, from its tree.
struct Scored {
  Scored(const std::string& name, const std::string& settings, const data::NodeGraphPtr& graph) {
    const auto samples = data::make_neighbourhoods(graph, {0, 0});
    const auto model = models::make_model(name, input_spec(samples->info()), parse_toml(settings, "model"));
    const Graph prediction = model->prediction(1);
    memory = std::make_unique<test::ModelMemory>(std::vector<const Graph*>{&prediction}, 5);
    test::GraphRunner run(prediction, *memory);
    data::Sample sample(samples->fields());
    for (std::uint64_t v = 0; v < samples->size(); ++v) {
      samples->get(v, {}, sample.ref());
      for (std::size_t l = 0; l < 3; ++l)
        std::ranges::copy(sample.field<float>(l), run.input<float>(samples->fields()[l].name).begin());
      run.run();
      const auto logits = run.output("logits");
      scores.emplace_back(logits.begin(), logits.end());
    }
  }
  std::span<const float> operator[](const std::string& name) { return memory->parameter(name); }
  std::unique_ptr<test::ModelMemory> memory;
  Rows scores;
};

void expect_near(const Rows& a, const Rows& b) {
  for (std::size_t r = 0; r < a.size(); ++r)
    for (std::size_t i = 0; i < a[r].size(); ++i) EXPECT_NEAR(a[r][i], b[r][i], 1e-4) << "node " << r;
}

void relu(Rows& rows) {
  for (auto& row : rows)
    for (double& x : row) x = std::max(0.0, x);
}

TEST(Gcn, IsTheProductWithTheNormalisedAdjacency) {
  const auto graph = small_graph();
  Scored gcn("gcn", "hidden = 5\ndropout = 0", graph);
  const auto around = [&](const Rows& x) {  // D^-1/2 (A + I) D^-1/2 x
    Rows y(x.size(), std::vector<double>(x[0].size()));
    for (std::uint32_t v = 0; v < graph->nodes(); ++v) {
      const auto add = [&](std::uint32_t u) {
        const double weight = 1 / std::sqrt((graph->degree(u) + 1.0) * (graph->degree(v) + 1.0));
        for (std::size_t i = 0; i < x[u].size(); ++i) y[v][i] += weight * x[u][i];
      };
      add(v);
      for (const std::uint32_t u : graph->of(v)) add(u);
    }
    return y;
  };
  Rows h = linear(around(features_of(*graph)), gcn["layer1.weights.weight"], gcn["layer1.weights.bias"], 5);
  relu(h);
  expect_near(gcn.scores, linear(around(h), gcn["layer2.weights.weight"], gcn["layer2.weights.bias"], 3));
}

TEST(Sage, IsTheNodeBesideTheMeanOfItsNeighbours) {
  const auto graph = small_graph();
  Scored sage("sage", "hidden = 5\ndropout = 0", graph);
  const auto beside = [&](const Rows& x) {
    Rows y;
    for (std::uint32_t v = 0; v < graph->nodes(); ++v) {
      std::vector<double> mean(x[0].size());
      for (const std::uint32_t u : graph->of(v))
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += x[u][i] / static_cast<double>(graph->degree(v));
      y.push_back(x[v]);
      y.back().insert(y.back().end(), mean.begin(), mean.end());
    }
    return y;
  };
  Rows h = linear(beside(features_of(*graph)), sage["layer1.weights.weight"], sage["layer1.weights.bias"], 5);
  relu(h);
  expect_near(sage.scores, linear(beside(h), sage["layer2.weights.weight"], sage["layer2.weights.bias"], 3));
}

TEST(Gat, WeighsNeighboursByAttention) {
  const auto graph = small_graph();
  Scored gat("gat", "hidden = 5\nheads = 2\ndropout = 0", graph);
  const auto head = [&](const Rows& x, const std::string& name, std::size_t out) {
    const Rows y = linear(x, gat[name + ".weights.weight"], {}, out), a = linear(y, gat[name + ".asks.weight"], {}, 1),
               b = linear(y, gat[name + ".answers.weight"], {}, 1);
    Rows sums(x.size(), std::vector<double>(out));
    for (std::uint32_t v = 0; v < graph->nodes(); ++v) {
      std::vector<std::uint32_t> all{v};
      all.insert(all.end(), graph->of(v).begin(), graph->of(v).end());
      double total = 0;
      for (const std::uint32_t u : all) {
        const double e = a[v][0] + b[u][0], weight = std::exp(e > 0 ? e : 0.2 * e);
        total += weight;
        for (std::size_t i = 0; i < out; ++i) sums[v][i] += weight * y[u][i];
      }
      for (double& s : sums[v]) s /= total;
    }
    return sums;
  };
  const Rows x = features_of(*graph);
  Rows h = head(x, "layer1.head0", 5);
  const Rows second = head(x, "layer1.head1", 5);
  for (std::size_t v = 0; v < h.size(); ++v) h[v].insert(h[v].end(), second[v].begin(), second[v].end());
  for (auto& row : h)
    for (double& value : row) value = value > 0 ? value : std::exp(value) - 1;
  Rows out = head(h, "layer2.head0", 3);
  const Rows other = head(h, "layer2.head1", 3);
  for (std::size_t v = 0; v < out.size(); ++v)
    for (std::size_t i = 0; i < 3; ++i) out[v][i] = (out[v][i] + other[v][i]) / 2;
  expect_near(gat.scores, out);
}

TEST(GraphNetworks, SayWhatTheyNeed) {
  for (const char* name : {"gcn", "sage", "gat"}) {
    try {
      models::make_model(name, {.inputs = {{"x", f32({5})}}, .target = {"label", i32({})}, .classes = 3});
      ADD_FAILURE() << name;
    } catch (const BadInput& problem) {
      EXPECT_NE(std::string(problem.what()).find("data.kind = \"graph\""), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace echelon
