// The simulated world: time, messages, failures, determinism.

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/world/sim_support.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using test::bytes_of;
using test::tree_all_reduce;

TEST(Sim, AMessageTakesLatencyAndItsBytesOverTheBandwidth) {
  const double latency = 1e-3, bandwidth = 1e6;
  for (const std::size_t bytes : {0, 1, 1000, 500'000}) {
    double arrived = -1;
    const auto report = run_in_simulation(SimCluster::uniform(2, latency, bandwidth), {}, [&](World& world) {
      std::vector<std::byte> data(bytes);
      if (world.rank() == 0) {
        world.send(1, 0, {}, data).wait(sim::never);
      } else {
        world.receive(0, 0, {}, data).wait(sim::never);
        arrived = world.now();
      }
    });
    report.throw_if_failed();
    EXPECT_NEAR(arrived, latency + static_cast<double>(bytes) / bandwidth, 1e-9) << bytes;
    EXPECT_EQ(report.messages, 1u);
    EXPECT_EQ(report.bytes, bytes);
    EXPECT_EQ(report.ranks[0].bytes_sent, bytes);
    EXPECT_EQ(report.ranks[1].messages_received, 1u);
  }
}

TEST(Sim, AMessagePassesATorusFromNeighbourToNeighbour) {
  SimCluster cluster;
  cluster.switches = {{"none", 1, 0}};
  cluster.torus = {.shape = {3, 4}, .bandwidth = 1e6, .latency = 1e-3};
  cluster.machines.assign(12, {.name = "chip"});
  const auto time = [&](const std::vector<std::pair<int, int>>& pairs) {
    const auto report = run_in_simulation(cluster, {}, [&](World& world) {
      std::vector<std::byte> data(1'000'000);
      std::vector<Work> all;
      for (const auto& [from, to] : pairs)
        if (from == world.rank()) all.push_back(world.send(to, 0, {}, data));
      for (const auto& [from, to] : pairs)
        if (to == world.rank()) all.push_back(world.receive(from, 0, {}, data));
      for (Work& w : all) w.wait(sim::never);
    });
    report.throw_if_failed();
    return report.seconds;
  };
  EXPECT_NEAR(time({{0, 1}}), 1.001, 1e-6);
  EXPECT_NEAR(time({{0, 3}}), 1.001, 1e-6);  // the shorter way round
  EXPECT_NEAR(time({{0, 8}}), 1.001, 1e-6);
  EXPECT_NEAR(time({{0, 6}}), 1.003, 1e-6);          // two wires along the row, one along the column
  EXPECT_NEAR(time({{0, 2}, {1, 2}}), 2.001, 1e-3);  // both need the wire from 1 to 2
  EXPECT_NEAR(time({{0, 1}, {1, 0}}), 1.001, 1e-6);  // each way has its own
}

TEST(Sim, RanksOfAMachineShareItsNicAndRacksTheirUplink) {
  SimCluster cluster;
  cluster.switches = {{"a", 0.5e6, 0}, {"b", 1e9, 0}};
  cluster.machines = {{.name = "x", .ranks = 2, .bandwidth = 1e6, .latency = 0, .attached_to = 0},
                      {.name = "y", .ranks = 2, .bandwidth = 1e6, .latency = 0, .attached_to = 0},
                      {.name = "z", .ranks = 2, .bandwidth = 1e6, .latency = 0, .attached_to = 1}};
  // Ranks 0 and 1 each send a megabyte to `first` + their number; when has all arrived?
  const auto time = [&](int first, int senders) {
    const auto report = run_in_simulation(cluster, {}, [&](World& world) {
      std::vector<std::byte> data(1'000'000);
      if (world.rank() < senders) world.send(first + world.rank(), 0, {}, data).wait(sim::never);
      if (world.rank() >= first && world.rank() < first + senders)
        world.receive(world.rank() - first, 0, {}, data).wait(sim::never);
    });
    report.throw_if_failed();
    return report.seconds;
  };
  EXPECT_NEAR(time(2, 1), 1, 1e-6);  // one NIC's worth
  EXPECT_NEAR(time(2, 2), 2, 1e-6);  // two share it
  EXPECT_NEAR(time(4, 1), 2, 1e-6);  // the uplink is half as fast
  EXPECT_NEAR(time(4, 2), 4, 1e-6);
  EXPECT_NEAR(time(1, 1), 1e6 / 1e10, 1e-6);  // within a machine
}

TEST(Sim, ComputeAndSleepTakeVirtualTimeAndTasksShareTheCore) {
  const auto report = run_in_simulation(SimCluster::uniform(1, 0, 1, 1e9), {}, [](World& world) {
    world.compute(2e9);
    EXPECT_DOUBLE_EQ(world.now(), 2);
    auto task = world.spawn("other", [&] { world.compute(1e9); });
    world.compute(1e9);
    task->join();
    EXPECT_DOUBLE_EQ(world.now(), 4);
    auto sleeper = world.spawn("sleeper", [&] { world.sleep(5); });
    world.sleep(5);
    sleeper->join();
    EXPECT_DOUBLE_EQ(world.now(), 9);
  });
  report.throw_if_failed();
  EXPECT_DOUBLE_EQ(report.seconds, 9);
  EXPECT_DOUBLE_EQ(report.ranks[0].compute_seconds, 4);
}

TEST(Sim, ATreeAllReduceSumsAndSendsTwiceNMinusOneMessages) {
  for (const int n : {1, 2, 3, 5, 8, 13, 64}) {
    const auto report = run_in_simulation(SimCluster::uniform(n, 1e-5, 1e9), {}, [n](World& world) {
      EXPECT_EQ(tree_all_reduce(world, world.rank() + 1.0), n * (n + 1) / 2.0);
    });
    report.throw_if_failed();
    EXPECT_EQ(report.messages, static_cast<std::uint64_t>(2 * (n - 1)));
    EXPECT_EQ(report.bytes, static_cast<std::uint64_t>(16 * (n - 1)));
  }
}

FaultPlan bad_weather() {
  FaultPlan plan;
  plan.drop = plan.duplicate = plan.corrupt = plan.stale = 0.1;
  plan.reorder = plan.delay = 0.2;
  return plan;
}

TEST(Sim, SameSeedSameTraceAnotherSeedAnother) {
  const auto run = [](std::uint64_t seed) {
    return run_in_simulation(SimCluster::uniform(8, 1e-4, 1e8), {.seed = seed, .faults = bad_weather()},
                             [](World& world) {
                               for (int i = 0; i < 5; ++i) tree_all_reduce(world, world.rank(), i);
                             });
  };
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto once = run(seed), again = run(seed);
    EXPECT_EQ(once.trace_hash, again.trace_hash);
    EXPECT_EQ(once.seconds, again.seconds);
    EXPECT_EQ(once.events, again.events);
    hashes.insert(once.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 10u);
}

TEST(Sim, TheTraceSeesTheContents) {
  const auto run = [](double value) {
    return run_in_simulation(SimCluster::uniform(2, 1e-4, 1e8), {}, [=](World& w) { tree_all_reduce(w, value); });
  };
  EXPECT_NE(run(1).trace_hash, run(2).trace_hash);
}

TEST(Sim, ALongSendWaitsForItsReceiver) {
  run_in_simulation(SimCluster::uniform(2, 1e-3, 1e9), {.eager_bytes = 100}, [](World& world) {
    std::vector<std::byte> small(100), large(101);
    if (world.rank() == 0) {
      EXPECT_TRUE(world.send(1, 0, {}, small).wait(world.now() + 1));
      Work work = world.send(1, 0, {}, large);
      EXPECT_FALSE(work.wait(world.now() + 1));
      EXPECT_TRUE(work.wait(world.now() + 10));
      EXPECT_NEAR(world.now(), 5, 1e-3);
    } else {
      world.receive(0, 0, {}, small).wait(sim::never);
      world.sleep(5 - world.now());
      world.receive(0, 0, {}, large).wait(sim::never);
    }
  }).throw_if_failed();
}

TEST(Sim, WhoNeverHearsIsToldWhatItWaitsFor) {
  const auto report = run_in_simulation(SimCluster::uniform(3, 1e-3, 1e9), {}, [](World& world) {
    std::vector<std::byte> data(8);
    const int next = (world.rank() + 1) % 3;
    world.receive(next, 4, {.kind = OperationKind::all_reduce, .number = 7}, data).wait(sim::never);
  });
  ASSERT_EQ(report.failures.size(), 3u);
  EXPECT_THROW(std::rethrow_exception(report.failures[0].error), Deadlock);
  EXPECT_NE(report.failures[0].text.find("rank 0 waits for all-reduce 7, step 0, of bytes (8 bytes) from rank 1"),
            std::string::npos)
      << report.failures[0].text;
  EXPECT_NE(report.failures[0].text.find("rank 2 waits for"), std::string::npos);
}

TEST(Sim, ADestructorThatWaitsForItsTaskSurvivesADeadlock) {
  const auto report = run_in_simulation(SimCluster::uniform(1, 1e-3, 1e9), {}, [](World& world) {
    auto event = world.make_event();
    auto task = world.spawn("waits", [&] { event->wait(1, sim::never); });
    fail("on purpose");
  });
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].text, "on purpose");
}

// Exceptions in flight belong to the fiber, not to the thread.
TEST(Sim, FibersMayWaitWhileTheyHandleExceptions) {
  run_in_simulation(SimCluster::uniform(5, 1e-3, 1e9), {}, [](World& world) {
    for (int round = 0; round < 3; ++round) try {
        throw std::runtime_error(std::to_string(world.rank()));
      } catch (const std::exception& error) {
        world.sleep(1.0 / (world.rank() + 1));
        EXPECT_EQ(std::stoi(error.what()), world.rank());
        try {
          std::rethrow_exception(std::current_exception());
        } catch (const std::exception& same) {
          world.sleep(0.1 * world.rank());
          EXPECT_EQ(std::stoi(same.what()), world.rank());
        }
      }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }).throw_if_failed();
}

TEST(Sim, ARankThatThrowsIsLostToAllOthersAndNamed) {
  const auto report = run_in_simulation(SimCluster::uniform(4, 1e-3, 1e9), {}, [](World& world) {
    world.sleep(1);
    if (world.rank() == 2) fail("out of luck");
    tree_all_reduce(world, 1);
  });
  ASSERT_EQ(report.failures.size(), 4u);
  EXPECT_EQ(report.failures[0].rank, 2);
  EXPECT_THROW(report.throw_if_failed(), RankFailed);
  for (std::size_t i = 1; i < 4; ++i) {
    try {
      std::rethrow_exception(report.failures[i].error);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 2);
      EXPECT_EQ(lost.reason(), "out of luck");
    }
    EXPECT_LT(report.failures[i].at, 1.01);
  }
}

TEST(Sim, BadInputStaysBadInput) {
  const auto report = run_in_simulation(SimCluster::uniform(2, 1e-3, 1e9), {}, [](World&) { bad_input("no"); });
  EXPECT_THROW(report.throw_if_failed(), BadInput);
  EXPECT_THROW(run_in_simulation(SimCluster{}, {}, [](World&) {}), BadInput);
  SimOptions crash_nobody;
  crash_nobody.faults.crashes = {{.rank = 7, .at = 1}};
  EXPECT_THROW(run_in_simulation(SimCluster::uniform(2, 1, 1), crash_nobody, [](World&) {}), BadInput);
}

TEST(Sim, MismatchedMessagesAreDescribed) {
  const auto report = run_in_simulation(SimCluster::uniform(2, 1e-3, 1e9), {}, [](World& world) {
    std::vector<std::byte> data(8);
    if (world.rank() == 0)
      world.send(1, 0, {.kind = OperationKind::broadcast, .number = 3}, data).wait(sim::never);
    else
      world.receive(0, 0, {.kind = OperationKind::reduce, .number = 3}, data).wait(sim::never);
  });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(
      report.failures[0].text,
      "rank 1 expected reduce 3, step 0, of bytes (8 bytes) from rank 0 on channel 0, but rank 0 sent broadcast 3, "
      "step 0, of bytes (8 bytes)");
}

TEST(Sim, ASinkTakesTheMessage) {
  run_in_simulation(SimCluster::uniform(2, 1e-3, 1e9), {}, [](World& world) {
    const std::string text = "hello";
    if (world.rank() == 0) {
      world.send(1, 9, {}, bytes_of(text)).wait(sim::never);
    } else {
      std::string got;
      const Sink sink{&got, [](void* self, std::size_t offset, std::span<const std::byte> piece) {
                        EXPECT_EQ(offset, static_cast<std::string*>(self)->size());
                        static_cast<std::string*>(self)->append(reinterpret_cast<const char*>(piece.data()),
                                                                piece.size());
                      }};
      world.receive(0, 9, {}, 5, sink).wait(sim::never);
      EXPECT_EQ(got, text);
    }
  }).throw_if_failed();
}

// Ranks x one tree all-reduce: the promise is 10 s for 10,000, kept with room to spare (docs/simulation.md has
// figures).
TEST(Sim, TenThousandRanks) {
  const int n = test::sanitized ? 500 : 10'000;
  const auto report = run_in_simulation(SimCluster::uniform(n, 1e-5, 1e9), {},
                                        [n](World& world) { EXPECT_EQ(tree_all_reduce(world, 1), n); });
  report.throw_if_failed();
  EXPECT_EQ(report.messages, static_cast<std::uint64_t>(2 * (n - 1)));
}

}  // namespace
}  // namespace echelon
