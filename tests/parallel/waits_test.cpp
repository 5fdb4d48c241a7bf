// Every wait ends: whoever fails or is late while others wait is named by them.

#include <gtest/gtest.h>

#include <new>

#include "tests/parallel/results.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using namespace test;

// After the last round all wait for each other; nobody ends the program because one does not come.
TEST(Waits, ARankThatFailsAfterTheLastRoundIsNamedByTheOthers) {
  std::vector<std::string> said(3);
  run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
    try {
      run_system(world, {.system = gradients_to_servers("", "async"), .batch = 30}, [&](Replica&) {
        if (world.rank() == 0) throw std::bad_alloc();
      });
    } catch (const PeerLost& lost) {
      said[static_cast<std::size_t>(world.rank())] = lost.what();
      throw;
    }
  });
  EXPECT_EQ(said[0], "");
  for (const std::size_t r : {1u, 2u}) EXPECT_TRUE(says(said[r], "rank 0 was lost")) << r;
}

// Buckets of its gradient that never become complete are not waited for.
class FailsInAStep : public testing::TestWithParam<const char*> {};

TEST_P(FailsInAStep, AndAllEndAtOnce) {
  SystemJob job{.system = GetParam(), .batch = 30, .shards = 2};
  job.prepare = [](Replica& replica, Rank rank) {
    if (rank == 1) replica.trainer().hooks().keep_going = []() -> bool { fail("the lights went out"); };
  };
  std::vector<std::string> said(3);
  const auto program = [&](World& world) {
    try {
      run_system(world, job);
    } catch (const Failure& failure) {
      said[static_cast<std::size_t>(world.rank())] = failure.what();
      throw;
    }
  };
  EXPECT_THROW(run_in_threads(3, {}, program), RankFailed);  // a simulation would wake all tasks of a lost rank
  for (const std::size_t r : {0u, 1u, 2u})
    EXPECT_TRUE(says(said[r], r == 1 ? "the lights went out" : "rank 1 was lost")) << r;
}

INSTANTIATE_TEST_SUITE_P(Waits, FailsInAStep,
                         testing::Values("[rule]\nname = 'grad_mean'\n",
                                         "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n",
                                         "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n[order]\nname = "
                                         "'priority'\n"));

// Three ranks, of which the last one sleeps before its first step. What the others say meanwhile, by rank.
struct Sleeper {
  std::vector<std::vector<std::string>> said{3};
  std::vector<RankTimes> times{3};
  SimReport report;
  Sleeper(const std::string& system, double seconds) {
    report = run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
      SystemJob job{.system = system, .batch = 30};
      job.prepare = [&](Replica&, Rank rank) {
        if (rank == 2) world.sleep(seconds);
      };
      job.on_late = [&](const WaitNotice& late) { said[static_cast<std::size_t>(world.rank())].push_back(late.text); };
      run_system(world, job,
                 [&](Replica& replica) { times[static_cast<std::size_t>(world.rank())] = replica.times(); });
    });
  }
};

// Every exchange by messages: whom one waits for is named, wherever its server is.
const std::vector<std::string> by_messages{
    gradients_to_servers("", "ssp"),
    gradients_to_servers("servers = 3", "ssp"),
    gradients_to_servers("", "essp"),
    gradients_to_servers("replicas = 2", "delay"),
    gradients_to_servers("", "bsp"),
    gradients_to_servers("servers = 3", "bsp"),
    gradients_to_servers("fanout = 1", "bsp"),
    "[rule]\nname = 'grad_push'\n[exchange]\nname = 'nested'\ngroup = 2\n",
    "[rule]\nname = 'elastic'\n[exchange]\nname = 'elastic_tree'\n[sync]\nname = 'async'\n",
};

TEST(Waits, WhoeverWaitsForAMessageSaysForWhom) {
  for (const std::string& system : by_messages) {
    SCOPED_TRACE(system);
    const Sleeper run(system, 30);
    run.report.throw_if_failed();
    for (const std::size_t r : {0u, 1u}) {
      ASSERT_FALSE(run.said[r].empty()) << r;
      EXPECT_TRUE(says(run.said[r].back(), " s for rank 2: ")) << r;
      EXPECT_LE(run.said[r].size(), 5u);  // after 2, 4, 8 and 16 seconds
    }
  }
}

// In the summary's figures the wait is the sleeper's, and no part of the exchange. In lock-step too.
TEST(Waits, SecondsAreCountedForWhomTheyWereWaited) {
  std::vector<std::string> systems = by_messages;
  for (const char* in_lockstep :
       {"[rule]\nname = 'param_mean'\n", "[rule]\nname = 'grad_mean'\n[order]\nname = 'fusion'\n",
        "[rule]\nname = 'neighbour_mean'\n[exchange]\nname = 'neighbour'\n[sync]\nname = 'bsp'\n"})
    systems.emplace_back(in_lockstep);
  for (const std::string& system : systems) {
    SCOPED_TRACE(system);
    const Sleeper run(system, 30);
    run.report.throw_if_failed();
    for (const std::size_t r : {0u, 1u}) {
      EXPECT_NEAR(run.times[r].waiting_for[2], 30, 1) << r;
      EXPECT_LT(run.times[r].waiting_for[0] + run.times[r].waiting_for[1] + run.times[r].exchange, 1) << r;
    }
    const RankTimes& its = run.times[2];
    EXPECT_LT(its.waiting_for[0] + its.waiting_for[1] + its.exchange, 1);
  }
}

TEST(Waits, NobodyWaitsForAMessageForEver) {
  for (const std::string& system : by_messages) {
    SCOPED_TRACE(system);
    const Sleeper run(system, 1e5);
    ASSERT_FALSE(run.report.ok());
    const SimFailure& first = run.report.failures.front();
    EXPECT_TRUE(says(first.text, "s for rank 2: "));
    EXPECT_TRUE(says(first.text, "the limit is 900 s"));
    EXPECT_LT(first.at, 2000);  // the tasks that read its messages end a little later
  }
}

// The first worker may train alone for hours.
TEST(Waits, AWarmStartMayTakeLong) {
  const SimReport report = run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
    SystemJob job{.system = gradients_to_servers("[when]\nwarm_start = 2", "async"), .batch = 30};
    job.prepare = [&](Replica&, Rank rank) {
      if (rank == 0) world.sleep(5000);
    };
    std::string said;
    job.on_late = [&](const WaitNotice& late) { said = said.empty() ? late.text : said; };
    run_system(world, job);
    if (world.rank() > 0) {
      EXPECT_TRUE(says(said, "for rank 0: message with the weights of the warm start"));
    }
  });
  report.throw_if_failed();
}

// A rule whose shared side runs out of memory.
class Exhausted : public MergeRule {
 public:
  explicit Exhausted(std::shared_ptr<const MergeRule> inner) : inner_(std::move(inner)) {}
  RuleTraits traits() const override { return inner_->traits(); }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override { return inner_->make_worker(view); }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<Side>(inner_->make_shared(place));
  }

 private:
  class Side : public SharedSide {
   public:
    explicit Side(std::unique_ptr<SharedSide> inner) : inner_(std::move(inner)) {}
    void conclude(std::span<float>, double) override { throw std::bad_alloc(); }
    std::span<const float> answer() const override { return inner_->answer(); }
    std::vector<StateSpan> state() override { return inner_->state(); }

   private:
    std::unique_ptr<SharedSide> inner_;
  };
  std::shared_ptr<const MergeRule> inner_;
};

TEST(Waits, WhatGoesWrongInAServerIsToldToAll) {
  SystemJob job{.system = gradients_to_servers("", "bsp"), .batch = 30};
  job.adapt = [](Composition& c) { c.rule = std::make_unique<Exhausted>(std::move(c.rule)); };
  const SimReport report =
      run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) { run_system(world, job); });
  ASSERT_FALSE(report.ok());
  EXPECT_LT(report.failures.front().at, 1);
  for (const SimFailure& f : report.failures)
    if (f.rank != 0) {
      EXPECT_TRUE(says(f.text, "rank 0 was lost (std::bad_alloc)"));
    }
}

}  // namespace
}  // namespace echelon
