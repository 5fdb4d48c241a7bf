// Who does which part of an epoch, and when it is over: with enough samples, before slow workers have done all of their
// own parts.

#include "parallel/team/work_scheduler.h"

#include <gtest/gtest.h>

#include "collective/collectives.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

constexpr int sharing_workers = 4, sharing_steps = 40, sharing_batch = 16;
constexpr std::int64_t all_samples = sharing_steps * sharing_batch, enough_samples = all_samples * 3 / 4;

std::vector<SystemResult> train(std::int64_t samples, double slowness) {
  return simulate_system(sharing_workers,
                         {.system = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n[sync]\nname = 'async'\n"
                                    "work = 'own'\n",
                          .steps = sharing_steps,
                          .batch = sharing_batch,
                          .stragglers = {{.rank = 2, .factor = slowness}},
                          .enough = samples},
                         SimCluster::uniform(sharing_workers, 1e-5, 1e9, 1e6));
}

TEST(EnoughSamples, EndARoundWithoutWaitingForASlowWorker) {
  const auto equal = train(all_samples, 1), whole = train(all_samples, 20), cut = train(enough_samples, 20);
  EXPECT_EQ(whole[0].samples, all_samples);
  EXPECT_GE(cut[0].samples, enough_samples);
  EXPECT_LT(cut[0].samples, all_samples);
  EXPECT_EQ(cut[0].reached, sharing_steps) << "what is left out does not come later";
  EXPECT_GT(whole[0].seconds, 15 * equal[0].seconds) << "a straggler that would show";
  const double piece = equal[0].seconds / sharing_steps;  // the slow one ends what it has, and what it has asked for
  EXPECT_LT(cut[0].seconds, equal[0].seconds + 2 * 20 * piece);
}

TEST(EnoughSamples, AreAtLeastAsManyAndNotManyMoreWhereAllAreEquallyFast) {
  const auto cut = train(enough_samples, 1);
  EXPECT_GE(cut[0].samples, enough_samples);
  EXPECT_LE(cut[0].samples, enough_samples + 2 * sharing_batch);  // of each worker the pieces that it had by then
  EXPECT_EQ(cut[0].reached, sharing_steps);
}

// The schedulers by themselves: every worker takes pieces until there is none, and says what it has done.
struct Day {
  std::vector<std::int64_t> end, done;  // by worker
};

Day work(std::int64_t enough_samples, const std::function<bool(Rank, std::int64_t done)>& wants_to_stop) {
  Day day{std::vector<std::int64_t>(sharing_workers), std::vector<std::int64_t>(sharing_workers)};
  run_in_simulation(SimCluster::uniform(sharing_workers, 1e-5, 1e9), {}, [&](World& world) {
    Cores cores(1);
    Team team(world, cores, true);
    Mailbox mailbox(world, 1 << 16);
    WorkScheduler scheduler(team, mailbox, false);
    scheduler.begin(100, 100 + sharing_steps, enough_samples);
    const auto r = static_cast<std::size_t>(world.rank());
    while (scheduler.next()) {
      world.sleep(1e-3 * (world.rank() == 2 ? 1.5 : 1));
      ++day.done[r];
      scheduler.done({.pieces = 1, .samples = sharing_batch / sharing_workers},
                     wants_to_stop(world.rank(), day.done[r]));
    }
    day.end[r] = scheduler.end();
    barrier(team.group(), "the end of the day");  // nobody asks any more
    mailbox.close();
  }).throw_if_failed();
  return day;
}

TEST(EnoughSamples, OnceDoneAreTheEndForEverybodyAlike) {
  // Half of the pieces are done when the slow one has 14 of them: its wish comes later.
  const Day day = work(all_samples / 2, [](Rank rank, std::int64_t done) { return rank == 2 && done >= 15; });
  for (const std::int64_t end : day.end) EXPECT_EQ(end, 100 + sharing_steps);
  EXPECT_LT(day.done[2], day.done[0]);
  for (const std::int64_t done : day.done) EXPECT_LE(done, 24);
}

// Somebody wants to stop, so that the run can go on later: then all parts of the steps before that are done.
TEST(EnoughSamples, LeaveNothingOutOfARoundThatIsStopped) {
  // Before 68 pieces are done, and these are before the slow one has done its parts.
  const Day day =
      work(68 * sharing_batch / sharing_workers, [](Rank rank, std::int64_t done) { return rank == 0 && done >= 18; });
  for (const std::int64_t end : day.end) EXPECT_EQ(end, day.end[0]);
  EXPECT_LT(day.end[0], 100 + sharing_steps);
  EXPECT_GT(sharing_workers * (day.end[0] - 100), 68);
  for (const std::int64_t done : day.done) EXPECT_EQ(done, day.end[0] - 100);
}

// What the scheduler tells of a round is of that round alone, and never more than was done in it.
TEST(WorkTotals, AreOfOneRound) {
  constexpr int rounds = 3, each = 5;
  run_in_simulation(SimCluster::uniform(sharing_workers, 1e-5, 1e9), {}, [&](World& world) {
    Cores cores(1);
    Team team(world, cores, true);
    Mailbox mailbox(world, 1 << 16);
    WorkScheduler scheduler(team, mailbox, true);
    for (int round = 0; round < rounds; ++round) {
      scheduler.begin(each * round, each * (round + 1));
      while (scheduler.next()) {
        world.sleep(1e-3 * (1 + world.rank()));
        scheduler.done({.pieces = 1, .loss = round == 0 ? 1000.0 : 1.0, .terms = 1}, false);
      }
      barrier(team.group(), "the end of a round");
      if (world.rank() != 0) continue;
      EXPECT_LE(scheduler.totals().pieces, each * sharing_workers);
      if (round > 0) {
        EXPECT_LE(scheduler.totals().loss, scheduler.totals().pieces) << "a loss of the round before";
      }
    }
    mailbox.close();
  }).throw_if_failed();
}

TEST(EpochShare, IsForWorkersThatHaveTheirOwnParts) {
  Problems problems;
  composition_of("[sync]\nname = 'async'\nepoch_share = 0.75", problems);
  EXPECT_NE(problems.text("").find("sync.work=own"), std::string::npos) << problems.text("");
  Problems none;
  EXPECT_EQ(composition_of("[sync]\nname = 'async'\nwork = 'own'\nepoch_share = 0.75", none).work.epoch_share, 0.75);
  EXPECT_TRUE(none.empty()) << none.text("");
}

}  // namespace
}  // namespace echelon
