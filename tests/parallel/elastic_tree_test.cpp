// Elastic forces along a tree, and workers that are drawn to an extrapolated centre.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/rules/rules.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

std::string tree(const std::string& settings) {
  return "[rule]\nname = 'elastic'\nalpha = 0.3\n[exchange]\nname = 'elastic_tree'\n" + settings +
         "\n[sync]\nname = 'async'\nwork = 'own'\n";
}

// A step takes longer than a message.
SimCluster slow_cores(int workers) { return SimCluster::uniform(workers, 1e-5, 1e9, 1e7); }

// Every worker begins elsewhere, and nobody learns: only forces move them.
struct Positions {
  std::vector<double> mean;
  double broadcast_state = 0;
};
Positions after(int workers, int steps, const std::string& system) {
  std::vector<std::vector<float>> weights(static_cast<std::size_t>(workers));
  run_in_simulation(slow_cores(workers), {.seed = 7}, [&](World& world) {
    SystemJob job{.system = system, .lr = 0, .steps = steps};
    job.prepare = [](Replica& replica, Rank rank) {
      for (float& w : replica.trainer().parameters()) w += static_cast<float>(rank);
    };
    weights[static_cast<std::size_t>(world.rank())] = run_system(world, job).weights;
  }).throw_if_failed();
  Positions p;
  p.mean.resize(weights[0].size());
  for (const auto& w : weights)
    for (std::size_t i = 0; i < w.size(); ++i) p.mean[i] += static_cast<double>(w[i]) / workers;
  for (const auto& w : weights)
    for (std::size_t i = 0; i < w.size(); ++i)
      p.broadcast_state = std::max(p.broadcast_state, std::abs(static_cast<double>(w[i]) - p.mean[i]));
  return p;
}

TEST(ElasticTree, ForcesCancelAlongEveryEdge) {
  const std::string system = tree("fanout = 2\n[when]\ntau = 2\ntau_down = 3");
  const Positions before = after(5, 0, system), some = after(5, 12, system), many = after(5, 120, system);
  for (std::size_t i = 0; i < before.mean.size(); ++i) {
    ASSERT_NEAR(some.mean[i], before.mean[i], 1e-4);
    ASSERT_NEAR(many.mean[i], before.mean[i], 1e-3);
  }
  EXPECT_LT(some.broadcast_state, before.broadcast_state);
  EXPECT_LT(many.broadcast_state, 0.05 * before.broadcast_state);  // all in one place
}

TEST(ElasticTree, BothPeriodsCount) {
  const int steps = 24;
  const auto up = simulate_system(4, {.system = tree("fanout = 3\n[when]\ntau = 2\ntau_down = 1000"), .steps = steps},
                                  slow_cores(4));
  const auto both =
      simulate_system(4, {.system = tree("fanout = 3\n[when]\ntau = 2\ntau_down = 8"), .steps = steps}, slow_cores(4));
  // The root shows its weights to three children every eight steps.
  EXPECT_EQ(both[0].sent.bytes - up[0].sent.bytes, steps / 8 * 3 * (48 + 4 * up[0].model.size()));
}

TEST(ElasticTree, Trains) {
  const SystemJob job{.system = tree("[when]\ntau = 2\ntau_down = 4"), .steps = 80, .batch = 48};
  EXPECT_GT(simulate_system(6, job, slow_cores(6))[0].accuracy, 0.9);
}

std::unique_ptr<const MergeRule> mpca(double penalty, bool extrapolate) {
  Options o = table({{"name", text("mpca")}, {"penalty", number(penalty)}, {"extrapolate", Option{extrapolate}}});
  Problems problems;
  OptionReader reader(o, problems);
  auto rule = read_rule(reader);
  problems.throw_if_any("test");
  return rule;
}

TEST(Mpca, TheGradientDrawsTowardsTheExtrapolatedCentre) {
  std::vector<float> w{1, 1, 1, 1}, g(4);
  const std::vector<TrainedSpan> segments{{.offset = 0, .size = 4}};
  const ReplicaView view{.weights = w, .gradient = g, .segments = &segments, .rank = 0, .workers = 2};
  const auto side = mpca(0.5, true)->make_worker(view);
  side->on_gradient();
  EXPECT_EQ(g[0], 0);  // where it began
  side->on_gradient();
  side->apply({0, 4}, std::vector<float>{3, 3, 3, 3});  // in two steps the centre has moved by 2
  std::ranges::fill(g, 0.0f);
  side->on_gradient();
  EXPECT_FLOAT_EQ(g[1], 0.5f * (1 - 3));
  std::ranges::fill(g, 0.0f);
  side->on_gradient();
  EXPECT_FLOAT_EQ(g[1], 0.5f * (1 - 4));  // and goes on by 1 a step

  const auto still = mpca(0.5, false)->make_worker(view);
  still->on_gradient();
  still->apply({0, 4}, std::vector<float>{3, 3, 3, 3});
  still->on_gradient();
  std::ranges::fill(g, 0.0f);
  still->on_gradient();
  EXPECT_FLOAT_EQ(g[1], 0.5f * (1 - 3));
}

std::string soft(const std::string& exchange, int staleness) {
  return fmt::format(
      "[rule]\nname = 'mpca'\npenalty = 0.3\n[exchange]\nname = 'server'\n{}\n[sync]\nname = 'soft'\nstaleness = {}\n",
      exchange, staleness);
}

TEST(Mpca, NobodyWaitsUntilTheLastAnswerIsTooLate) {
  SystemJob job{.system = soft("", 1000), .steps = 40};
  job.stragglers = {{.rank = 3, .factor = 10}};
  auto waited = [&] {
    double seconds = 0;
    run_in_simulation(SimCluster::uniform(4, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
      run_system(world, job, [&](Replica& replica) {
        for (const Figure& f : replica.figures())
          if (f.first == "seconds_waited") seconds = f.second;
      });
    }).throw_if_failed();
    return seconds;
  };
  const double soft_wait = waited();
  job.system = soft("", 1);
  EXPECT_LT(3 * soft_wait, waited());
}

TEST(Mpca, TrainsAlsoOverATree) {
  for (const char* exchange : {"[when]\ntau = 2", "fanout = 2", "servers = 'all'\nfanout = 2\n[when]\ntau = 3"}) {
    SCOPED_TRACE(exchange);
    const auto ranks = simulate_system(5, {.system = soft(exchange, 16), .steps = 80, .batch = 40});
    EXPECT_GT(ranks[0].accuracy, 0.9);
    for (const SystemResult& r : ranks) EXPECT_TRUE(same_bits(r.model, ranks[0].model));
  }
}

}  // namespace
}  // namespace echelon
