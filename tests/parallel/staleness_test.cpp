// Workers at their own pace: how far they may be apart, what they wait for, and what that is good for. On simulated
// clusters whose cores are slow enough for computing to take most of the time.

#include <gtest/gtest.h>

#include "parallel/exchanges/oplog.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

const std::vector<Straggler> one_slow{{.rank = 2, .factor = 4}};
const std::vector<Straggler> now_and_then{{.rank = -1, .factor = 4, .chance = 0.7}};

std::string stale_servers(const std::string& sync) {
  return "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n[sync]\nname = " + sync + "\n";
}

std::vector<SystemResult> run_with(const std::string& sync, const std::vector<Straggler>& stragglers, int steps = 24,
                                   double latency = 1e-5) {
  return simulate_system(4, {.system = stale_servers(sync), .steps = steps, .stragglers = stragglers},
                         SimCluster::uniform(4, latency, 1e9, 1e6));
}

TEST(BoundedStaleness, TheFastestNeverLeadsTheSlowestByMoreThanTheBound) {
  for (const std::string kind : {"'ssp'", "'essp'", "'delay'"})
    for (const int s : {0, 1, 3})
      for (const auto& stragglers : {one_slow, now_and_then}) {
        SCOPED_TRACE(kind + " " + std::to_string(s));
        const auto figures = run_with(kind + "\nstaleness = " + std::to_string(s), stragglers)[0].figures;
        EXPECT_EQ(figures.at("most_lead"), s) << "the bound holds, and is used";
        EXPECT_GT(figures.at("seconds_waited"), 0);
      }
  EXPECT_GT(run_with("'ssp'\nstaleness = 100", one_slow)[0].figures.at("most_lead"), 6)
      << "a straggler that would show";
}

TEST(BoundedStaleness, StragglersCostLessTimeThanInRounds) {
  const double bsp = run_with("'bsp'", now_and_then)[0].seconds, ssp = run_with("'ssp'", now_and_then)[0].seconds;
  EXPECT_LT(ssp, 0.85 * bsp) << "short delays are absorbed";
  // One that is always slow has to do its part in the end; but it does not wait for answers besides.
  const double latency = 2e-3;
  const double slow_bsp = run_with("'bsp'", one_slow, 24, latency)[0].seconds;
  const double slow_ssp = run_with("'ssp'", one_slow, 24, latency)[0].seconds;
  EXPECT_LT(slow_ssp, 0.98 * slow_bsp);
}

TEST(BoundedStaleness, EagerParametersAreFresher) {
  const auto ssp = run_with("'ssp'", now_and_then), essp = run_with("'essp'", now_and_then);
  EXPECT_LT(essp[0].figures.at("mean_age"), 0.9 * ssp[0].figures.at("mean_age"));
  EXPECT_GT(essp[0].figures.at("mean_age"), 0);
  const auto equal_ssp = run_with("'ssp'", {}), equal_essp = run_with("'essp'", {});
  EXPECT_LT(equal_essp[0].figures.at("mean_age"), 0.6 * equal_ssp[0].figures.at("mean_age"));
  EXPECT_LT(equal_essp[0].figures.at("mean_staleness"), 0.8 * equal_ssp[0].figures.at("mean_staleness"));
}

TEST(BoundedStaleness, WithBoundedDelayEveryStepReadsAfresh) {
  const auto ssp = run_with("'ssp'", now_and_then), delay = run_with("'delay'", now_and_then);
  EXPECT_LT(delay[0].figures.at("mean_staleness"), ssp[0].figures.at("mean_staleness"));
  const double fresh = static_cast<double>(run_with("'delay'", {})[0].sent.bytes);
  EXPECT_GT(fresh, 1.2 * static_cast<double>(run_with("'ssp'", {})[0].sent.bytes)) << "which costs answers";
}

TEST(BoundedStaleness, AWorkerSeesItsOwnWritesAlsoInParametersThatLeftBeforeThem) {
  exchanges::OpLog log;
  std::vector<float> w{1, 2, 3, 4};
  for (std::int64_t clock = 0; clock < 3; ++clock) {
    log.begin(w);
    for (float& x : w) x += static_cast<float>(clock + 1);
    log.end(clock, w);
  }
  std::vector<float> fresh{10, 20, 30, 40};  // has the writes of clock 0 in it
  log.redo(1, 1, 2, fresh);
  EXPECT_EQ(fresh, (std::vector<float>{10, 25, 35, 40}));
  log.forget_before(2);
  log.redo(0, 0, 1, fresh);
  EXPECT_EQ(fresh[0], 13);
}

// The servers' parameters are at the end what every worker has, whoever pushed last: nothing was lost or made twice.
TEST(BoundedStaleness, EagerWorkersEndWithTheServersWeights) {
  const auto ranks = run_with("'essp'", now_and_then, 24, 3e-3);  // so that much is on its way
  for (const SystemResult& r : ranks)
    for (std::size_t i = 0; i < r.weights.size(); ++i) EXPECT_NEAR(r.weights[i], r.model[i], 1e-5);
}

TEST(ValueBound, ThoseAheadNeverBeginFartherFromTheSlowestThanItAllows) {
  const auto bounded = run_with("'value'\nbound = 0.02\nwork = 'own'", one_slow);
  EXPECT_LE(bounded[0].figures.at("most_moved"), 0.02);
  EXPECT_GT(bounded[0].figures.at("most_moved"), 0);
  const auto free = run_with("'value'\nbound = 1e9\nwork = 'own'", one_slow);
  EXPECT_GT(free[0].figures.at("most_moved"), 0.02) << "weights that would move farther";
  EXPECT_GT(bounded[0].figures.at("seconds_waited"), free[0].figures.at("seconds_waited"));
}

TEST(Async, NobodyWaitsForASlowWorkerWhoDoesLess) {
  const double without = run_with("'async'", {}, 48)[0].seconds, with = run_with("'async'", one_slow, 48)[0].seconds;
  EXPECT_LT(with, without / 0.7) << "three and a quarter workers of four are left";
  EXPECT_GT(run_with("'bsp'", one_slow, 48)[0].seconds, 3 * without);
}

TEST(Async, SpeedIsMeasuredWithoutTheTimeThatAWorkerWaits) {
  EXPECT_NEAR(run_with("'ssp'", {})[0].figures.at("least_speed"), 1, 0.1);
  const double slow =
      run_with("'ssp'", one_slow, 48)[0].figures.at("least_speed");  // all push equally often in the end
  EXPECT_NEAR(slow, 0.25 / (3.25 / 4), 0.12);
}

TEST(Async, IsDeterministicInASimulation) {
  for (const std::string sync : {"'async'", "'ssp'", "'essp'", "'delay'", "'value'"}) {
    const auto once = run_with(sync, now_and_then), again = run_with(sync, now_and_then);
    EXPECT_TRUE(same_bits(once[0].model, again[0].model)) << sync;
  }
}

}  // namespace
}  // namespace echelon
