// Several learners on a worker, and how their number is found.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "parallel/exchanges/autotune.h"
#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;

// Lets a tuner find its setting where throughput is what `model` says.
template <typename Model>
LearnerSetting tuned(Autotune& tuner, const Model& model, int windows = 60) {
  for (int i = 0; i < windows; ++i) tuner.measured(1000, 1000 / model(tuner.setting()));
  return tuner.setting();
}

TEST(Autotune, AddsLearnersAsLongAsThroughputRises) {
  Autotune tuner({.most_learners = 8}, {1, 4});
  const auto model = [](LearnerSetting s) { return s.learners <= 3 ? 100.0 * static_cast<double>(s.learners) : 300; };
  EXPECT_EQ(tuned(tuner, model), (LearnerSetting{3, 1}));  // and then a tau that costs nothing
  EXPECT_TRUE(tuner.has_settled());
}

TEST(Autotune, StopsAtTheMost) {
  Autotune tuner({.most_learners = 4}, {1, 1});
  EXPECT_EQ(tuned(tuner, [](LearnerSetting s) { return 100.0 * static_cast<double>(s.learners); }).learners, 4);
}

TEST(Autotune, FallsBackFromALearnerThatMakesItSlower) {
  Autotune tuner({}, {1, 1});
  EXPECT_EQ(tuned(tuner, [](LearnerSetting s) { return 100.0 / static_cast<double>(s.learners); }),
            (LearnerSetting{1, 1}));
}

TEST(Autotune, KeepsMeetingsApartWhereTheyCost) {
  Autotune tuner({.most_learners = 1}, {1, 16});
  // A meeting costs as much as three steps.
  EXPECT_EQ(tuned(tuner, [](LearnerSetting s) { return 100.0 / (1 + 3.0 / static_cast<double>(s.tau)); }).tau, 16);
}

TEST(Autotune, TakesALearnerAwayWhenThroughputFallsLater) {
  Autotune tuner({.most_learners = 8}, {1, 1});
  const auto good = [](LearnerSetting s) { return s.learners <= 4 ? 100.0 * static_cast<double>(s.learners) : 100.0; };
  ASSERT_EQ(tuned(tuner, good).learners, 4);
  const auto bad = [](LearnerSetting s) { return 100.0 / static_cast<double>(s.learners); };
  EXPECT_EQ(tuned(tuner, bad, 200).learners, 1);
}

std::string crossbow(const std::string& exchange) {
  return fmt::format("[rule]\nname = 'sma'\nmomentum = 0.5\n[exchange]\n{}\n", exchange);
}

TEST(Learners, OneIsTheSameAsNoneBitForBit) {
  const SystemJob plain{.system = crossbow("name = 'all_reduce'\n[when]\ntau = 2"), .steps = 8};
  const SystemJob one{.system = crossbow("name = 'learners'\n[when]\ntau = 2"), .steps = 8};
  const auto a = simulate_system(4, plain), b = simulate_system(4, one);
  for (std::size_t r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(a[r].weights, b[r].weights)) << r;
}

// Two learners of one worker are to the central model what one learner of each of two workers is.
TEST(Learners, OfAWorkerCountLikeThoseOfOthers) {
  const SystemJob job{.system = crossbow("name = 'learners'\nlearners = 2\n[when]\ntau = 3"), .lr = 0.02, .steps = 120};
  const auto all = simulate_system(2, job);
  EXPECT_GT(all[0].accuracy, 0.95);
  for (const SystemResult& r : all) EXPECT_TRUE(same_bits(r.model, all[0].model));
  const SystemJob one{.system = crossbow("name = 'learners'\n[when]\ntau = 3"), .lr = 0.02, .steps = 120};
  EXPECT_LT(bytes_of(all), 0.6 * bytes_of(simulate_system(2, one))) << "they do not meet before the workers do";
}

TEST(Learners, BeginAnewFromTheCentralModelWhenTheRateHasFallenToHalf) {
  SystemJob job{.system = crossbow("name = 'learners'\nlearners = 2\n[when]\ntau = 1"), .steps = 12};
  EXPECT_EQ(simulate_system(2, job)[0].figures.at("restarts"), 0);
  job.schedule = [](std::int64_t step) { return step < 6 ? 0.05 : 0.03; };
  EXPECT_EQ(simulate_system(2, job)[0].figures.at("restarts"), 0);
  job.schedule = [](std::int64_t step) { return step < 6 ? 0.05 : 0.01; };
  EXPECT_EQ(simulate_system(2, job)[0].figures.at("restarts"), 1);
  // Without a rate nothing moves a learner away from where the restart has put it, nor the central model.
  job.schedule = [](std::int64_t step) { return step < 6 ? 0.05 : 0.0; };
  const auto at = simulate_system(2, job);
  job.steps = 30;
  const auto later = simulate_system(2, job);
  EXPECT_TRUE(same_bits(at[0].model, later[0].model)) << "the central model has kept its momentum";
  EXPECT_TRUE(same_bits(later[1].weights, later[1].model)) << "a learner is elsewhere";
}

// Between exchanges learners do not know of each other, so their steps may be made at the same time; 20 steps are no
// multiple of 3 learners, nor 2 slots of 3.
TEST(Learners, SideBySideGiveTheBitsOfOneAfterTheOther) {
  for (const int learners : {2, 3})
    for (const int workers : {1, 2}) {
      SystemJob job{.system = crossbow(fmt::format("name = 'learners'\nlearners = {}\n[when]\ntau = 2", learners)),
                    .network = cases()[1],
                    .steps = 20};
      const auto in_turn = thread_system(workers, job);
      EXPECT_EQ(in_turn[0].figures.at("side_by_side"), 1);
      for (const int cores : {2, 3}) {
        SCOPED_TRACE(fmt::format("{} learners, {} workers, {} cores", learners, workers, cores));
        job.cores = cores;
        const auto at_once = thread_system(workers, job);
        EXPECT_EQ(at_once[0].figures.at("side_by_side"), std::min(learners, cores));
        for (std::size_t r = 0; r < at_once.size(); ++r) {
          EXPECT_TRUE(same_bits(in_turn[r].model, at_once[r].model)) << "rank " << r;
          EXPECT_TRUE(same_bits(in_turn[r].weights, at_once[r].weights)) << "rank " << r;
          EXPECT_EQ(in_turn[r].samples, at_once[r].samples);
        }
      }
    }
}

// A batch of one shard keeps one core busy. Two learners meet in the middle of their steps, each on its own core.
TEST(Learners, ComputeAtTheSameTimeOnCoresOfTheirOwn) {
  std::atomic<bool> here[2] = {false, false};
  std::atomic<bool> met = false;
  SystemJob job{.system = crossbow("name = 'learners'\nlearners = 2\n[when]\ntau = 2"), .steps = 8, .cores = 2};
  job.prepare = [&](Replica& replica, Rank) {
    replica.watch({.now = [] { return 0.0; },
                   .on_node =
                       [&](int core, const Node&, double, double) {
                         if (met) return;
                         here[core] = true;
                         const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                         while (!here[1 - core] && std::chrono::steady_clock::now() < deadline)
                           std::this_thread::yield();
                         met = here[0] && here[1];
                       }});
  };
  thread_system(1, job);
  EXPECT_TRUE(met);
}

TEST(Learners, BecomeMoreWhereMessagesAreSlow) {
  const SimCluster slow = SimCluster::uniform(4, 0.05, 1e5);
  const std::string settings = "name = 'learners'\nwindow = 2\nmost = 3\nautotune = ";
  const SystemJob tuned{.system = crossbow(settings + "true"), .steps = 90};
  const SystemJob fixed{.system = crossbow(settings + "false"), .steps = 90};
  const auto a = simulate_system(4, tuned, slow), again = simulate_system(4, tuned, slow),
             b = simulate_system(4, fixed, slow);
  EXPECT_LT(bytes_of(a), 0.7 * bytes_of(b));
  EXPECT_LT(a[0].seconds, 0.7 * b[0].seconds) << "throughput has not risen";
  EXPECT_TRUE(same_bits(a[0].model, again[0].model)) << "not deterministic in a simulation";
}

}  // namespace
}  // namespace echelon
