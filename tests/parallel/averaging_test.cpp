// Workers that train alone and meet now and then: the formulas of their papers, computed here a second time.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/rules/rules.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

std::unique_ptr<const MergeRule> rule_of(const std::string& toml) {
  Problems problems;
  const Options options = parse_toml(toml, "rule");
  OptionReader reader(options, problems);
  auto rule = read_rule(reader);
  problems.throw_if_any("rule");
  return rule;
}

// A worker with a few weights, and no network.
struct Someone {
  explicit Someone(std::vector<float> start, int workers = 1)
      : weights(std::move(start)), gradient(weights.size()), segments{{.offset = 0, .size = weights.size()}} {
    view = {.weights = weights, .gradient = gradient, .segments = &segments, .workers = workers};
  }
  std::vector<float> weights, gradient;
  std::vector<TrainedSpan> segments;
  ReplicaView view;
};

std::unique_ptr<SharedSide> centre_of(const MergeRule& rule, const std::vector<float>& start, int workers) {
  return rule.make_shared(
      {.start = start, .segments = {}, .workers = workers, .make_optim = [] { return optim("sgd"); }});
}

const std::vector<std::vector<float>> movements{{0.5f, -1}, {0.25f, 2}, {-1, 0.75f}, {0.125f, -0.5f}};
const std::vector<double> rates{0.1, 0.1, 0.05, 0.025};

// z after the movements, by a rule's own shared side.
std::vector<float> after_movements(const std::string& toml) {
  const auto rule = rule_of(toml);
  const std::vector<float> start{1, -2};
  const auto shared = centre_of(*rule, start, 4);
  for (std::size_t t = 0; t < movements.size(); ++t) {
    std::vector<float> mean = movements[t];
    shared->conclude(mean, rates[t]);
  }
  return {shared->model().begin(), shared->model().end()};
}

TEST(OuterMomentum, BlockIsBmuf) {
  // Chen and Huo 2016: D(t) = eta D(t-1) + zeta G(t), W(t) = W(t-1) + D(t)
  const double eta = 0.6, zeta = 0.9;
  const auto z = after_movements("name = 'outer_momentum'\nkind = 'block'\nmomentum = 0.6\nlr = 0.9");
  for (std::size_t i = 0; i < 2; ++i) {
    double w = i == 0 ? 1 : -2, d = 0;
    for (const auto& g : movements) w += d = eta * d + zeta * g[i];
    EXPECT_NEAR(z[i], w, 1e-5);
  }
}

TEST(OuterMomentum, KindSlowmoIsSlowmo) {
  // Wang et al. 2020: u = beta u + (x_0 - x_tau) / gamma, x = x_0 - alpha gamma u, with the rate gamma of the info
  const double beta = 0.5, alpha = 0.8;
  const auto z = after_movements("name = 'outer_momentum'\nkind = 'slowmo'\nmomentum = 0.5\nlr = 0.8");
  for (std::size_t i = 0; i < 2; ++i) {
    double x = i == 0 ? 1 : -2, u = 0;
    for (std::size_t t = 0; t < movements.size(); ++t) {
      u = beta * u - movements[t][i] / rates[t];
      x -= alpha * rates[t] * u;
    }
    EXPECT_NEAR(z[i], x, 1e-5);
  }
}

TEST(OuterMomentum, NesterovIsDiloco) {
  // Douillard et al. 2023: SGD with Nesterov momentum on the outer gradient -movement
  const double mu = 0.9, lr = 0.7;
  const auto z = after_movements("name = 'outer_momentum'\nkind = 'nesterov'\nmomentum = 0.9\nlr = 0.7");
  for (std::size_t i = 0; i < 2; ++i) {
    double w = i == 0 ? 1 : -2, buffer = 0;
    for (const auto& m : movements) {
      const double g = -m[i];
      buffer = mu * buffer + g;
      w -= lr * (g + mu * buffer);
    }
    EXPECT_NEAR(z[i], w, 1e-5);
  }
}

std::vector<SystemResult> train(const std::string& rule, const std::string& exchange, int steps = 12) {
  return simulate_system(4, {.system = fmt::format("[rule]\n{}\n[exchange]\n{}\n", rule, exchange), .steps = steps});
}

TEST(OuterMomentum, WithoutMomentumIsThePlainMeanBitForBit) {
  const std::string every = "name = 'all_reduce'\n[when]\ntau = 3";
  const auto mean = train("name = 'param_mean'", every);
  const auto block = train("name = 'outer_momentum'\nmomentum = 0", every);
  const auto momentum = train("name = 'outer_momentum'\nmomentum = 0.5", every);
  for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(mean[r].weights, block[r].weights)) << r;
  EXPECT_FALSE(same_bits(mean[0].weights, momentum[0].weights)) << "momentum is not used";
}

TEST(Elastic, ForcesOnWorkerAndCentreCancel) {
  const auto rule = rule_of("name = 'elastic'\nalpha = 0.3");
  Someone worker({1, -2, 4});
  const std::vector<float> start{0, 1, 3.5f};
  const auto side = rule->make_worker(worker.view);
  const auto centre = centre_of(*rule, start, 4);
  std::vector<float> sent(3);
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> w = worker.weights, z{centre->model().begin(), centre->model().end()};
    side->contribute({0, 3}, 1, sent);
    centre->absorb(sent, {});
    side->apply({0, 3}, centre->answer());
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(worker.weights[k] + centre->model()[k], w[k] + z[k], 1e-6) << "a force without its counterforce";
      EXPECT_NEAR(worker.weights[k], w[k] - 0.3 * (w[k] - z[k]), 1e-6);
    }
  }
}

TEST(Sma, CentreMovesByAllCorrectionsAndItsMomentum) {
  const auto rule = rule_of("name = 'sma'\nalpha = 0.25\nmomentum = 0.5");
  const std::vector<float> start{0, 0};
  const auto centre = centre_of(*rule, start, 3);
  std::vector<Someone> workers;
  workers.reserve(3);
  for (int i = 0; i < 3; ++i) workers.emplace_back(start, 3);
  std::vector<std::unique_ptr<WorkerSide>> sides;
  for (Someone& w : workers) sides.push_back(rule->make_worker(w.view));
  std::vector<double> z{0, 0}, before{0, 0};
  std::vector<float> mean(2), sent(2);
  for (int round = 0; round < 4; ++round) {
    std::ranges::fill(mean, 0.0f);
    std::vector<double> corrections{0, 0};
    for (std::size_t i = 0; i < 3; ++i) {
      workers[i].weights[0] += static_cast<float>(i) + 1;  // what it has learned
      workers[i].weights[1] -= 0.5f * static_cast<float>(round);
      const std::vector<float> w = workers[i].weights;
      sides[i]->contribute({0, 2}, 1.0 / 3, sent);
      for (std::size_t k = 0; k < 2; ++k) {
        corrections[k] += 0.25 * (w[k] - z[k]);
        mean[k] += sent[k];
        EXPECT_NEAR(workers[i].weights[k], w[k] - 0.25 * (w[k] - z[k]), 1e-5) << "a learner is drawn to the centre";
      }
    }
    centre->conclude(mean, 0);
    for (std::size_t k = 0; k < 2; ++k) {
      const double next = z[k] + corrections[k] + 0.5 * (z[k] - before[k]);
      before[k] = z[k], z[k] = next;
      EXPECT_NEAR(centre->model()[k], z[k], 1e-4);
    }
    for (auto& side : sides) side->apply({0, 2}, centre->answer());
  }
}

// Averaged once, when the model is read: what is sent before does not depend on the size of the model.
TEST(ParallelSgd, SendsNothingOfTheModelBeforeTheEnd) {
  SystemJob job{.system = "[rule]\nname = 'param_mean'\n[exchange]\nname = 'all_reduce'\n[when]\nat_end = true\n"};
  const auto small = simulate_system(4, job);
  job.network.options = table({{"hidden", integers({120})}});
  const auto large = simulate_system(4, job);
  for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(small[r].sent.bytes, large[r].sent.bytes);
  EXPECT_FALSE(same_bits(small[0].weights, small[1].weights)) << "somebody has averaged on the way";
  for (std::size_t i = 0; i < small[0].model.size(); ++i) {
    double mean = 0;
    for (const SystemResult& r : small) mean += r.weights[i] / 4.0;
    EXPECT_NEAR(small[0].model[i], mean, 1e-6);
  }
}

TEST(SignMajority, CountsHeadsAndNotSizes) {
  const auto rule = rule_of("name = 'sign_majority'\nmomentum = 0");
  const std::vector<std::vector<float>> gradients{{-10, 0.1f, 0}, {1, 0.2f, 0}, {1, -0.1f, 0}};
  std::vector<float> sum(3), sent(3);
  Someone worker({0, 0, 0}, 3);
  const auto side = rule->make_worker(worker.view);
  for (const auto& g : gradients) {
    std::ranges::copy(g, worker.gradient.begin());
    side->contribute({0, 3}, 0.2, sent);
    for (std::size_t k = 0; k < 3; ++k) sum[k] += sent[k];
  }
  const auto shared = centre_of(*rule, {0, 0, 0}, 3);
  shared->conclude(sum, 0);
  side->apply({0, 3}, shared->answer());
  EXPECT_EQ(worker.gradient, (std::vector<float>{1, 1, 0}));
}

TEST(SignMajority, AVoteIsOfTheMeanOfTheLastGradients) {
  Someone worker({0}, 1);
  const auto side = rule_of("name = 'sign_majority'\nmomentum = 0.9")->make_worker(worker.view);
  std::vector<float> vote(1);
  for (const float g : {1.0f, 1.0f, -1.0f, 1.0f, -1.0f}) {  // the mean is above zero all the time
    worker.gradient[0] = g;
    side->contribute({0, 1}, 1, vote);
    EXPECT_EQ(vote[0], 1) << g;
  }
  worker.gradient[0] = -5;
  side->contribute({0, 1}, 1, vote);
  EXPECT_EQ(vote[0], -1);
}

TEST(Tau, IsRefusedIfTheRunEndsBeforeItsFirstExchange) {
  const auto problems_of = [](const std::string& rule, const std::string& exchange, int tau) {
    Problems found;
    const auto system = composition_of(
        fmt::format("[rule]\nname = '{}'\n[exchange]\nname = '{}'\n[when]\ntau = {}\n", rule, exchange, tau), found);
    check_composition(system, {.workers = 4, .steps = 20}, found);
    return found.text("");
  };
  EXPECT_EQ(problems_of("outer_momentum", "all_reduce", 20), "");
  EXPECT_NE(problems_of("outer_momentum", "all_reduce", 21).find("set when.tau to at most 20"), std::string::npos);
  EXPECT_EQ(problems_of("param_mean", "all_reduce", 21), "") << "the mean of what all have learnt is a model";
}

}  // namespace
}  // namespace echelon
