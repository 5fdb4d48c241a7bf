// The optimizer where gradients meet, and the cures for gradients that come late.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

// A shared side of some weights, as a server has it.
struct Owner {
  std::vector<float> start;
  std::unique_ptr<const MergeRule> rule;
  std::unique_ptr<SharedSide> side;
  std::string problems;

  Owner(const std::string& settings, std::vector<float> weights, int workers) : start(std::move(weights)) {
    const Options tree = parse_toml("name = 'grad_push'\n" + settings, "rule");
    Problems found;
    OptionReader reader(tree, found);
    rule = read_rule(reader);
    problems = found.text("");
    side = rule->make_shared({.start = start,
                              .segments = {{.offset = 0, .size = start.size(), .decays = false}},
                              .workers = workers,
                              .make_optim = [] { return optim("sgd"); }});
  }
  float w(std::size_t i = 0) const { return side->answer()[i]; }
  void push(float g, const PushInfo& a) { side->absorb(std::vector<float>(start.size(), g), a); }
};

TEST(GradPush, DividesTheRateByTheStalenessIfAsked) {  // Rudra
  for (const int staleness : {0, 1, 3, 9}) {
    Owner owner("scale = 'staleness'", {0}, 4);
    owner.push(1, {.staleness = static_cast<double>(staleness), .lr = 0.1 / 4});
    EXPECT_NEAR(owner.w(), -0.1 / (1 + staleness), 1e-7);
  }
}

TEST(GradPush, UpdatesAfterSeveralGradientsWithSoftsync) {   // Rudra
  Owner owner("scale = 'staleness'\nsoftsync = 2", {0}, 8);  // floor(8 / 2) gradients
  for (const float g : {1, 2, 3}) {
    owner.push(g, {.staleness = static_cast<double>(g), .lr = 0.1 / 8});
    EXPECT_EQ(owner.w(), 0);
    EXPECT_TRUE(owner.side->waits_for_more());
  }
  owner.push(6, {.staleness = 0, .lr = 0.1 / 8});
  EXPECT_FALSE(owner.side->waits_for_more());
  EXPECT_NEAR(owner.w(), -0.1 / (1 + 1.5) * 3, 1e-7);  // the mean of the gradients, at the mean of their staleness
  // The same, where a relay has added up the first three.
  Owner relayed("scale = 'staleness'\nsoftsync = 2", {0}, 8);
  relayed.push(2, {.staleness = 2, .contributions = 3, .lr = 0.3 / 8});
  relayed.push(6, {.staleness = 0, .lr = 0.1 / 8});
  EXPECT_NEAR(relayed.w(), owner.w(), 1e-7);
}

TEST(Softsync, IsRefusedWhereAnUpdateWouldHaveLessThanAGradient) {
  for (const auto& [softsync, refused] : {std::pair(4, false), std::pair(5, true)}) {
    Problems problems;
    const Composition c = composition_of(
        fmt::format("[rule]\nname = 'grad_push'\nsoftsync = {}\n[exchange]\nname = 'server'\n[sync]\nname = 'async'\n",
                    softsync),
        problems);
    check_composition(c, {.workers = 4}, problems);
    EXPECT_EQ(problems.text("").find("softsync=5") != std::string::npos, refused) << problems.text("");
  }
}

TEST(Softsync, CountsEveryGradientThroughRelays) {
  // 7 workers under relays of 2, 6 steps each: an update has 3 gradients at least, and no gradient is counted twice.
  SystemJob job{.system =
                    "[rule]\nname = 'grad_push'\nscale = 'staleness'\nsoftsync = 2\n[exchange]\nname = 'server'\n"
                    "fanout = 2\n[sync]\nname = 'async'\nwork = 'own'\n",
                .rule = "sgd",
                .steps = 6,
                .batch = 28};
  const auto tree = simulate_system(7, job);
  EXPECT_LE(tree[0].figures.at("updates"), 7 * 6 / 3);
  EXPECT_GE(tree[0].figures.at("updates"), 7 * 6 / 7);  // a sum may be of all of them
  EXPECT_EQ(tree[0].figures.at("contributions"), 7 * 6);
  job.system.erase(job.system.find("fanout = 2\n"), 11);
  const auto flat = simulate_system(7, job);
  EXPECT_EQ(flat[0].figures.at("updates"), 7 * 6 / 3);
  EXPECT_EQ(flat[0].figures.at("contributions"), 7 * 6);
}

TEST(GradPush, LetsSlowWorkersWeighLessIfAsked) {  // Jiang et al.
  Owner plain("", {0}, 4), by_speed("scale = 'speed'", {0}, 4);
  for (Owner* o : {&plain, &by_speed}) o->push(1, {.lr = 0.1, .speed = 0.3});
  EXPECT_NEAR(plain.w(), -0.1, 1e-7);
  EXPECT_NEAR(by_speed.w(), -0.03, 1e-7);
}

TEST(GradPush, CompensatesTheDelayByWhatItsWorkerHadRead) {  // DC-ASGD
  const double lambda = 0.5, lr = 0.1;
  Owner owner("dc_lambda = 0.5", {1, 2}, 2);
  owner.side->was_read(0), owner.side->was_read(1);
  owner.push(2, {.from = 1, .lr = lr});  // nothing has happened since it read: no compensation
  EXPECT_NEAR(owner.w(), 1 - lr * 2, 1e-6);
  const double now = owner.w(), g = 3;
  owner.push(3, {.from = 0, .staleness = 1, .lr = lr});
  EXPECT_NEAR(owner.w(), now - lr * (g + lambda * g * g * (now - 1)), 1e-6);
}

TEST(GradPush, RefusesAnOwnersOptimizerThatNeedsTheWhole) {
  EXPECT_NE(Owner("optim = { name = 'lars' }", {0}, 2).problems.find("take momentum or adam"), std::string::npos);
  EXPECT_NE(Owner("optim = { name = 'sgd', lr = 1.0 }", {0}, 2).problems.find("leave it out"), std::string::npos);
  EXPECT_NE(Owner("momentum_correction = 1.0", {0}, 2).problems.find("set that too"), std::string::npos);
  EXPECT_NE(Owner("momentum_correction = 1.0\noptim = { name = 'adam' }", {0}, 2).problems.find("set its name"),
            std::string::npos);
  EXPECT_NE(Owner("optim = { name = 'sgd', momentun = 1.0 }", {0}, 2).problems, "");
  EXPECT_EQ(Owner("optim = { name = 'adagrad' }", {0}, 2).problems, "");
}

// On a quadratic, with workers that finish in random order: the momentum of the movement, as the paper measures it, by
// least squares of E w(t+1) - w(t) = mu (w(t) - w(t-1)) - a w(t) over the mean of many runs.
double measured_momentum(const std::string& settings, int workers) {
  constexpr int steps = 60, runs = 4000;
  std::vector<double> mean(steps + 1);
  std::mt19937 random(5);
  for (int run = 0; run < runs; ++run) {
    Owner owner(settings, {1}, workers);
    std::vector<float> read(static_cast<std::size_t>(workers), 1.0f);
    for (int t = 0; t < steps; ++t) {
      mean[static_cast<std::size_t>(t)] += owner.w() / runs;
      const auto who = static_cast<std::size_t>(random() % static_cast<unsigned>(workers));
      owner.push(read[who], {.from = static_cast<Rank>(who), .lr = 0.02});
      read[who] = owner.w();
    }
    mean[steps] += owner.w() / runs;
  }
  double xx = 0, xy = 0, yy = 0, xz = 0, yz = 0;
  for (std::size_t t = 1; t < steps; ++t) {
    const double x = mean[t] - mean[t - 1], y = -mean[t], z = mean[t + 1] - mean[t];
    xx += x * x, xy += x * y, yy += y * y, xz += x * z, yz += y * z;
  }
  return (xz * yy - yz * xy) / (xx * yy - xy * xy);
}

TEST(GradPush, TakesOffTheMomentumThatAsynchronyBrings) {  // Mitliagkas et al.
  const int workers = 4;
  const double plain = measured_momentum("optim = { name = 'sgd' }", workers);
  EXPECT_NEAR(plain, 1 - 1.0 / workers, 0.1) << "asynchrony begets momentum";
  const double corrected = measured_momentum("momentum_correction = 1.0\noptim = { name = 'sgd' }", workers);
  EXPECT_LT(corrected, plain - 0.5);
  // A wanted momentum is what is there in the end, if it is more than what comes by itself.
  Owner owner("momentum_correction = 1.0\noptim = { name = 'momentum', momentum = 0.9 }", {1}, workers);
  owner.push(1, {.lr = 0.1});
  owner.push(0, {.lr = 0.1});
  EXPECT_NEAR(owner.w(), 1 - 0.1 - 0.1 * (0.9 - 0.75), 1e-6);
}

// Logistic regression on labels with noise, one sample a gradient, and every gradient as many updates late as there are
// other workers. The mean loss over the second half, over seeds.
double loss_under_delay(const std::string& settings, int workers) {
  constexpr std::size_t dims = 4, samples = 100;
  constexpr int steps = 400, seeds = 6;
  const auto chance = [](double z) { return 1 / (1 + std::exp(-z)); };
  double loss = 0;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    std::array<std::array<double, dims>, samples> x;
    std::array<double, samples> y;
    std::array<double, dims> truth;
    for (double& t : truth) t = 1.5 * normal(random);
    for (std::size_t i = 0; i < samples; ++i) {
      for (double& v : x[i]) v = normal(random);
      y[i] = uniform(random) < chance(std::inner_product(truth.begin(), truth.end(), x[i].begin(), 0.0)) ? 1 : 0;
    }
    Owner owner(settings, std::vector<float>(dims), workers);
    std::vector<std::vector<float>> read(static_cast<std::size_t>(workers), owner.start);
    for (int t = 0; t < steps; ++t) {
      const auto who = static_cast<std::size_t>(t % workers);
      const std::size_t i = random() % samples;
      const double error = chance(std::inner_product(x[i].begin(), x[i].end(), read[who].begin(), 0.0)) - y[i];
      std::vector<float> g(dims);
      for (std::size_t d = 0; d < dims; ++d) g[d] = static_cast<float>(error * x[i][d]);
      owner.side->absorb(g, {.from = static_cast<Rank>(who), .staleness = static_cast<double>(workers - 1), .lr = 0.2});
      owner.side->was_read(static_cast<Rank>(who));
      read[who].assign(owner.side->answer().begin(), owner.side->answer().end());
      if (t < steps / 2) continue;
      for (std::size_t j = 0; j < samples; ++j) {
        const double z = std::inner_product(x[j].begin(), x[j].end(), owner.side->answer().begin(), 0.0);
        loss += (std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - y[j] * z) / samples / (steps / 2) / seeds;
      }
    }
  }
  return loss;
}

TEST(GradPush, CompensationHelpsUnderDelay) {
  const double plain = loss_under_delay("", 33), compensated = loss_under_delay("dc_lambda = 1.0", 33);
  EXPECT_LT(compensated, 0.95 * plain);
  EXPECT_NEAR(loss_under_delay("", 1), loss_under_delay("dc_lambda = 1.0", 1), 1e-6) << "without delay nothing changes";
}

// ---- in whole trainings

std::string push_servers(const std::string& sync, const std::string& rule = "") {
  return "[rule]\nname = 'grad_push'\n" + rule +
         "\n[exchange]\nname = 'server'\nservers = 'all'\n[sync]\nname = " + sync + "\n";
}

TEST(GradPush, TheOwnersOptimizerMakesTheWorkersSteps) {
  for (const std::string& rule : rule_names()) {
    if (rule == "lars" || rule == "lamb" || rule == "ng_sgd") continue;  // they need whole parameters
    SCOPED_TRACE(rule);
    const auto at_server = simulate_system(3, {.system = push_servers("'bsp'"), .rule = rule, .lr = 0.01});
    const auto at_workers =
        simulate_system(3, {.system = "[rule]\nname = 'grad_mean'\n[exchange]\nname = 'server'\nservers = 'all'",
                            .rule = rule,
                            .lr = 0.01});
    for (std::size_t i = 0; i < at_server[0].model.size(); ++i)  // parts end elsewhere, so vectors do
      EXPECT_NEAR(at_server[0].model[i], at_workers[0].model[i], 1e-6);
    const auto named = simulate_system(
        3, {.system = push_servers("'bsp'", "[rule.optim]\nname = '" + rule + "'\n"), .rule = "sgd", .lr = 0.01});
    EXPECT_TRUE(same_bits(at_server[0].model, named[0].model));
  }
}

TEST(GradPush, WithoutLambdaCompensationIsPlainAsynchrony) {
  const auto plain = simulate_system(4, {.system = push_servers("'async'")});
  const auto zero = simulate_system(4, {.system = push_servers("'async'", "dc_lambda = 0.0")});
  const auto some = simulate_system(4, {.system = push_servers("'async'", "dc_lambda = 0.1")});
  EXPECT_TRUE(same_bits(plain[0].model, zero[0].model));
  EXPECT_FALSE(same_bits(plain[0].model, some[0].model));
}

// The running statistics of every rank's own replica, after some steps of a network with batch norm.
std::vector<std::vector<float>> statistics_of(const std::string& system, int workers, int batch) {
  SystemJob job{.system = system, .network = cases()[2], .steps = 2, .batch = batch};
  std::vector<std::vector<float>> all(static_cast<std::size_t>(workers));
  run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
    run_system(world, job, [&](Replica& replica) {
      for (const TrainedSpan& s : replica.trainer().segments())
        if (s.statistic)
          for (std::size_t i = 0; i < s.size; ++i)
            all[static_cast<std::size_t>(world.rank())].push_back(replica.trainer().parameters()[s.offset + i]);
    });
  }).throw_if_failed();
  return all;
}

TEST(GradPush, StatisticsMoveWhereTheWorkerIsThoughTheStepIsMadeElsewhere) {
  const auto here = statistics_of("[rule]\nname = 'grad_mean'\n", 2, 8);
  const auto there = statistics_of("[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n", 2, 8);
  ASSERT_FALSE(here[0].empty());
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < here[r].size(); ++i)
      ASSERT_NEAR(there[r][i], here[r][i], 1e-4 * (1 + std::abs(here[r][i]))) << r << " " << i;
}

TEST(GradPush, AWorkerThatHasSeenNothingLeavesItsStatisticsAlone) {
  for (const std::string system :
       {"[rule]\nname = 'grad_mean'\n", "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n"}) {
    int untouched = 0;  // one of four has no sample
    for (const auto& own : statistics_of(system, 4, 3))
      untouched += std::ranges::all_of(own, [](float x) { return x == 0 || x == 1; });
    EXPECT_EQ(untouched, 1);
  }
}

}  // namespace
}  // namespace echelon
