// What the fault plan says does happen, and what must happen then does: in bad weather a program either ends with the
// result of fine weather or stops with a reason that names somebody. And each planted bug is noticed by random seeds.

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/random_faults.h"
#include "tests/support/temp_dir.h"
#include "tests/world/sim_support.h"
#include "world/sim/disk_with_room_of.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using test::bytes_of;
using test::random_faults;
using test::tree_all_reduce;

constexpr int ranks = 6, steps = 20, channels = 4;
constexpr std::uint64_t seeds_to_try = test::sanitized ? 60 : 400;

// Every step each rank sends its number to the next one on several channels at once and mixes what it gets into it; now
// and then all sum up, write that down on their disk, and a lost message, a double one or a wrong one changes the end.
void mixing_program(World& world, std::vector<std::uint64_t>& results) {
  const int n = world.size(), next = (world.rank() + 1) % n, before = (world.rank() + n - 1) % n;
  std::uint64_t mine = static_cast<std::uint64_t>(world.rank());
  const double timeout = 60;
  for (int step = 0; step < steps; ++step) {
    world.set_status("step " + std::to_string(step));
    world.compute(1e7);
    if (step == steps / 2) world.sleep(30);  // quiet on all wires: what is not acknowledged by now stands out
    const Label label{.kind = OperationKind::plain, .type = 4, .step = 0, .number = static_cast<std::uint32_t>(step)};
    std::array<std::uint64_t, channels> out, in;
    std::vector<Work> works;
    for (std::size_t c = 0; c < channels; ++c) {
      out[c] = mine * 31 + c;
      works.push_back(world.send(next, static_cast<Channel>(10 + c), label, bytes_of(std::span(&out[c], 1))));
      works.push_back(
          world.receive(before, static_cast<Channel>(10 + c), label, std::as_writable_bytes(std::span(&in[c], 1))));
    }
    for (Work& work : works)
      if (!work.wait(world.now() + timeout)) throw TooLate("a neighbour is too late");
    for (const std::uint64_t word : in) mine = (mine ^ word) * 0x9E3779B97F4A7C15u;
    if (step % 5 == 4)
      mine ^= static_cast<std::uint64_t>(tree_all_reduce(world, static_cast<double>(mine % 1000), step, timeout));
  }
  results[static_cast<std::size_t>(world.rank())] = mine;
}

struct Outcome {
  SimReport report;
  std::vector<std::uint64_t> results = std::vector<std::uint64_t>(ranks);
};

Outcome run(std::uint64_t seed, const FaultPlan& faults, const PlantedBugs& bugs = {}) {
  Outcome outcome;
  outcome.report =
      run_in_simulation(SimCluster::uniform(ranks, 2e-5, 1e9), {.seed = seed, .faults = faults, .bugs = bugs},
                        [&](World& world) { mixing_program(world, outcome.results); });
  return outcome;
}

const std::vector<std::uint64_t>& clean() {
  static const std::vector<std::uint64_t> results = run(0, {}).results;
  return results;
}

TEST(SimFaults, EachKindOfFrameFaultHappensAndIsCured) {
  const std::pair<double FaultPlan::*, std::uint64_t FaultCounts::*> kinds[] = {
      {&FaultPlan::drop, &FaultCounts::dropped},      {&FaultPlan::duplicate, &FaultCounts::duplicated},
      {&FaultPlan::reorder, &FaultCounts::reordered}, {&FaultPlan::delay, &FaultCounts::delayed},
      {&FaultPlan::corrupt, &FaultCounts::corrupted}, {&FaultPlan::stale, &FaultCounts::stale}};
  for (const auto& [chance, count] : kinds) {
    FaultPlan plan;
    plan.*chance = 0.2;
    const Outcome outcome = run(5, plan);
    EXPECT_TRUE(outcome.report.ok());
    EXPECT_EQ(outcome.results, clean());
    const double share = static_cast<double>(outcome.report.faults.*count) / static_cast<double>(outcome.report.frames);
    EXPECT_NEAR(share, 0.2, 0.06);
  }
}

// Of two events of each kind the first happens, the second would come when all is over.
TEST(SimFaults, TheReportSaysWhichPlannedEventsHappened) {
  FaultPlan plan;
  plan.pauses = {{1, 0.001, 0.1}, {1, 1e6, 1}};
  plan.slow = {{2, 3, 0, 1}, {2, 3, 1e6, 1e7}};
  plan.partitions = {{.one = {0}, .other = {1}, .begin = 0.002, .end = 0.01},
                     {.one = {0}, .other = {1}, .begin = 1e6, .end = 1e7}};
  plan.crashes = {{5, 1e6}};
  const FaultAccount account = account_for(plan, run(1, plan).report.fired);
  EXPECT_EQ(account.fired.size(), 3u);
  EXPECT_EQ(account.unfired.size(), 4u);
  EXPECT_EQ(account.unfired[0], "crash rank 5 at 1000000 s");
}

TEST(SimFaults, AFullDiskHasHappenedWhenItRefused) {
  FaultPlan plan;
  plan.full_disks = {{0, 0, 1}, {0, 5, 6}};
  const auto real = make_real_disk();
  const test::TempDir dir;
  const SimReport report = run_in_simulation(SimCluster::uniform(1, 1e-5, 1e9), {.faults = plan}, [&](World& world) {
    world.sleep(0.5);
    const auto disk = make_disk_with_room_of(world.disk(), *real);
    EXPECT_THROW(write_file_atomically(*disk, dir.path("a"), "text"), DiskError);
    world.sleep(1);
    write_file_atomically(*disk, dir.path("a"), "text");
    world.sleep(9);
  });
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.fired.full_disks, (std::vector<char>{1, 0}));
  EXPECT_EQ(real->list(dir.path()), std::vector<std::string>{"a"});
}

TEST(SimFaults, FineWeatherNeedsNoFrames) { EXPECT_EQ(run(1, {}).report.frames, 0u); }

// The essential promise, over many seeds.
TEST(SimFaults, TheCleanResultOrANamedReason) {
  std::uint64_t finished = 0, stopped = 0;
  FaultCounts sum;
  for (std::uint64_t seed = 0; seed < seeds_to_try; ++seed) {
    const FaultPlan plan = random_faults(seed, ranks, 0.05);
    const Outcome outcome = run(seed, plan);
    sum.dropped += outcome.report.faults.dropped;
    sum.crashes += outcome.report.faults.crashes;
    sum.cut += outcome.report.faults.cut;
    if (outcome.report.ok()) {
      ++finished;
      ASSERT_EQ(outcome.results, clean()) << "seed " << seed << "\n" << to_text(plan);
      continue;
    }
    ++stopped;
    for (const SimFailure& failure : outcome.report.failures) {
      const bool named = failure.crashed || failure.text.find("rank ") != std::string::npos;
      ASSERT_TRUE(named) << "seed " << seed << ": " << failure.text;
      ASSERT_EQ(failure.text.find("no rank can go on"), std::string::npos) << "seed " << seed << ": " << failure.text;
    }
  }
  printf("%d seeds ended with the clean result, %d stopped with a reason\n", static_cast<int>(finished),
         static_cast<int>(stopped));
  EXPECT_GT(finished, seeds_to_try / 2);
  EXPECT_GT(stopped, seeds_to_try / 10);
  EXPECT_GT(sum.dropped, 2 * seeds_to_try);
  EXPECT_GT(sum.crashes, seeds_to_try / 20);
  EXPECT_GT(sum.cut, seeds_to_try / 4);
}

TEST(SimFaults, WhatHealsIsSurvived) {
  for (std::uint64_t seed = 0; seed < seeds_to_try; ++seed) {
    const FaultPlan plan = random_faults(seed, ranks, 0.05, false);
    const Outcome outcome = run(seed, plan);
    ASSERT_TRUE(outcome.report.ok()) << "seed " << seed << ": " << outcome.report.failures[0].text << "\n"
                                     << to_text(plan);
    ASSERT_EQ(outcome.results, clean()) << "seed " << seed;
  }
}

TEST(SimFaults, ACrashIsPeerLostAtAllOthersAfterTheDetectionTime) {
  SimOptions options{.detection_seconds = 0.3};
  options.faults.crashes = {{.rank = 2, .at = 1}};
  std::vector<double> heard(5, 0);
  bool swallowed = false;
  const auto report = run_in_simulation(SimCluster::uniform(5, 1e-4, 1e9), options, [&](World& world) {
    try {
      for (int i = 0;; ++i) tree_all_reduce(world, 1, i, sim::never, 1e8);
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 2);
      EXPECT_NE(lost.operation().find("reduce"), std::string::npos);
      heard[static_cast<std::size_t>(world.rank())] = world.now();
      throw;
    } catch (const std::exception&) {
      swallowed = true;  // a crash is no exception that a program could see
    }
  });
  EXPECT_FALSE(swallowed);
  ASSERT_EQ(report.failures.size(), 5u);
  EXPECT_TRUE(report.failures[0].crashed);
  EXPECT_EQ(report.failures[0].rank, 2);
  EXPECT_DOUBLE_EQ(report.failures[0].at, 1);
  for (const int rank : {0, 1, 3, 4}) EXPECT_NEAR(heard[static_cast<std::size_t>(rank)], 1.3, 1e-6);
}

TEST(SimFaults, APausedRankAnswersLaterAndASlowOneComputesLonger) {
  const auto seconds = [](const FaultPlan& plan) {
    return run_in_simulation(SimCluster::uniform(3, 1e-4, 1e9, 1e9), {.faults = plan},
                             [](World& world) {
                               for (int i = 0; i < 10; ++i) tree_all_reduce(world, 1, i, sim::never, 1e8);
                             })
        .seconds;
  };
  FaultPlan paused, slow;
  paused.pauses = {{.rank = 1, .at = 0.05, .seconds = 5}};
  slow.slow = {{.rank = 1, .factor = 4}};
  EXPECT_NEAR(seconds({}), 1, 0.01);
  EXPECT_NEAR(seconds(paused), 6, 0.1);
  EXPECT_NEAR(seconds(slow), 4, 0.04);
}

TEST(SimFaults, APartitionThatHealsOnlyDelaysAndOneThatDoesNotIsNamed) {
  for (const bool one_way : {false, true}) {
    FaultPlan plan;
    plan.partitions = {{.one = {0, 1}, .other = {2, 3, 4, 5}, .one_way = one_way, .begin = 0.001, .end = 0.4}};
    const Outcome healed = run(1, plan);
    ASSERT_TRUE(healed.report.ok()) << healed.report.failures[0].text;
    EXPECT_EQ(healed.results, clean());
    EXPECT_GT(healed.report.faults.cut, 0u);
    EXPECT_GT(healed.report.seconds, 0.3);

    plan.partitions[0].end = FaultPlan::forever;
    const Outcome cut = run(1, plan);
    ASSERT_FALSE(cut.report.ok());
    EXPECT_EQ(cut.report.failures.size(), static_cast<std::size_t>(ranks));
    EXPECT_NE(cut.report.failures[0].text.find("no answer to 16 tries"), std::string::npos)
        << cut.report.failures[0].text;
  }
}

// A program that saves its step; a machine that loses power; what was saved as complete is there afterwards.
int saved_step(MemoryDisk& disk) { return disk.exists("run/step") ? std::stoi(read_text(disk, "run/step")) : -1; }

int steps_lost_to_power(double at, const PlantedBugs& bugs) {
  SimOptions options{.bugs = bugs};
  options.faults.crashes = {{.rank = 0, .at = at, .power = true}};
  options.disks = {std::make_shared<MemoryDisk>(~std::uint64_t{0}, bugs)};
  int done = -1;
  run_in_simulation(SimCluster::uniform(1, 0, 1), options, [&](World& world) {
    world.disk().make_directories("run");
    world.disk().sync_directory("");
    for (int step = 0;; ++step) {
      write_file_atomically(world.disk(), "run/step", std::to_string(step));
      done = step;
      world.sleep(1);
      auto draft = world.disk().create("run/draft");  // never synced
      draft->append(bytes_of(std::string("half")));
    }
  });
  // Its name may have been saved with the others; its bytes never were.
  MemoryDisk& disk = *options.disks[0];
  EXPECT_EQ(disk.exists("run/draft") ? read_text(disk, "run/draft") : "", "");
  return done - saved_step(disk);
}

TEST(SimFaults, LossOfPowerLosesExactlyWhatWasNotSynced) {
  for (const double at : {0.5, 1.5, 7.0, 9.99}) EXPECT_EQ(steps_lost_to_power(at, {}), 0);
  EXPECT_GT(steps_lost_to_power(7.5, {.sync_lies = true}), 0);  // the planted bug is noticed
}

TEST(SimFaults, AFullDiskRefusesAndRecovers) {
  SimOptions options;
  options.faults.full_disks = {{.machine = 0, .begin = 2, .end = 5}};
  std::vector<bool> written;
  const auto report = run_in_simulation(SimCluster::uniform(1, 0, 1), options, [&](World& world) {
    world.sleep(0.5);
    for (int i = 0; i < 8; ++i, world.sleep(1)) try {
        write_file_atomically(world.disk(), "file", std::to_string(i));
        written.push_back(true);
      } catch (const DiskError& error) {
        EXPECT_EQ(error.error_number(), ENOSPC);
        written.push_back(false);
        EXPECT_EQ(read_text(world.disk(), "file"), "1");  // the old one is still there
      }
  });
  report.throw_if_failed();
  EXPECT_EQ(written, (std::vector<bool>{true, true, false, false, false, true, true, true}));
  EXPECT_EQ(report.faults.full_disks, 3u);
}

struct Planted {
  const char* name;
  bool PlantedBugs::*bug;
};

class SimPlanted : public testing::TestWithParam<Planted> {};

// Without the bug each of these seeds ends with the clean result (WhatHealsIsSurvived), or stops when a rank crashes.
TEST_P(SimPlanted, IsCaughtByRandomSeeds) {
  PlantedBugs bugs;
  bugs.*GetParam().bug = true;
  constexpr int seeds = 60;
  int caught = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    FaultPlan plan = random_faults(seed, ranks, 0.05, false);
    // On frames the sender finds out by itself, with or without a notice: so without.
    if (bugs.silent_crash) {
      plan = {};
      plan.crashes = {{.rank = static_cast<int>(seed % ranks), .at = 0.001 * static_cast<double>(seed)}};
    }
    const Outcome outcome = run(seed, plan, bugs);
    if (bugs.silent_crash) {  // who waits for the dead must hear it from the world, not find out by the clock
      for (const SimFailure& failure : outcome.report.failures)
        if (failure.text.find("too late") != std::string::npos || failure.text.find("go on") != std::string::npos) {
          ++caught;
          break;
        }
    } else {
      caught += !outcome.report.ok() || outcome.results != clean();
    }
  }
  RecordProperty("caught_of_60", caught);
  printf("%s: caught by %d of %d seeds\n", GetParam().name, caught, seeds);
  EXPECT_GT(caught, seeds / 5);
}

INSTANTIATE_TEST_SUITE_P(Bugs, SimPlanted,
                         testing::Values(Planted{"skip_checksum", &PlantedBugs::skip_checksum},
                                         Planted{"accept_duplicates", &PlantedBugs::accept_duplicates},
                                         Planted{"deliver_out_of_order", &PlantedBugs::deliver_out_of_order},
                                         Planted{"never_retransmit", &PlantedBugs::never_retransmit},
                                         Planted{"ignore_epoch", &PlantedBugs::ignore_epoch},
                                         Planted{"short_timeout", &PlantedBugs::short_timeout},
                                         Planted{"silent_crash", &PlantedBugs::silent_crash}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace echelon
