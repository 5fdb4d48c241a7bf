// Weights that everybody writes without a lock: the races are real, training bears them, and groups with a token lose
// nothing by being apart.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "parallel/exchanges/racing_weights.h"
#include "tests/parallel/systems.h"
#include "world/launch.h"

namespace echelon {
namespace {

using namespace test;

struct Memory {
  Memory(std::size_t floats, int groups) : buffer(RacingWeights::memory_bytes(floats, groups)) {}
  Buffer buffer;
  std::span<std::byte> bytes() { return buffer.as<std::byte>(); }
};

constexpr int racing_ranks = 4, racing_times = 20'000;

// What is missing of 4 ranks' additions of 1 to each of 16 numbers.
double missing_after_a_race(RacingWeights::Add how) {
  constexpr std::size_t floats = 16;
  Memory memory(floats, 1);
  run_in_threads(racing_ranks, {}, [&](World&) {
    RacingWeights weights(memory.bytes(), floats, 1, how, 1);
    const std::vector<float> ones(floats, 1);
    for (int i = 0; i < racing_times; ++i) weights.add(0, ones);
  });
  RacingWeights weights(memory.bytes(), floats, 1, how, 1);
  EXPECT_EQ(weights.updates(0), static_cast<std::uint64_t>(racing_ranks * racing_times));
  std::vector<float> sum(floats);
  weights.read(0, sum);
  return racing_ranks * racing_times * static_cast<double>(floats) - std::accumulate(sum.begin(), sum.end(), 0.0);
}

TEST(RacingWeights, LoseUpdatesWhereTwoWriteAtOnce) {
  double missing = 0;
  for (int attempt = 0; attempt < 1000 && missing == 0; ++attempt)  // on one core it takes a badly timed interruption
    missing = missing_after_a_race(RacingWeights::Add::racing);
  EXPECT_GT(missing, 0) << "nobody has raced";
}

TEST(RacingWeights, LoseNothingIfAddedAtomically) { EXPECT_EQ(missing_after_a_race(RacingWeights::Add::atomic), 0); }

TEST(RacingWeights, PassATokenToAllGroupsInTurn) {
  constexpr int groups = 3;
  Memory memory(4, groups);
  RacingWeights weights(memory.bytes(), 4, groups, RacingWeights::Add::racing, 2);
  weights.start(std::vector<float>(4, 10));
  const std::vector<float> change{1, 0, 0.5f, 0};
  std::vector<int> holders;
  for (int i = 0; i < 24; ++i)
    for (int g = 0; g < groups; ++g) {
      weights.add(g, change);
      if (holders.empty() || holders.back() != weights.holder()) holders.push_back(weights.holder());
    }
  ASSERT_GT(holders.size(), 6u);
  for (std::size_t i = 1; i < holders.size(); ++i) EXPECT_EQ(holders[i], (holders[i - 1] + 1) % groups);
  for (int g = 1; g < groups; ++g) EXPECT_NEAR(weights.handed_on(g), weights.handed_on(0), 1);

  weights.drain();
  std::vector<float> values(4);
  for (int g = 0; g < groups; ++g) {  // every change counts once in every group
    weights.read(g, values);
    EXPECT_NEAR(values[0], 10 + 24 * groups, 1e-3);
    EXPECT_EQ(values[1], 10);
    EXPECT_NEAR(values[2], 10 + 12 * groups, 1e-3);
  }
}

// A change is on its way to the other groups before anybody settles anything.
TEST(RacingWeights, OfAGroupReachTheNextWithTheToken) {
  Memory memory(1, 2);
  RacingWeights weights(memory.bytes(), 1, 2, RacingWeights::Add::racing, 1);
  std::vector<float> one{1}, value(1);
  weights.add(0, one);  // and passes the token
  weights.read(1, value);
  EXPECT_EQ(value[0], 1);
  weights.add(1, one);
  weights.read(0, value);
  EXPECT_EQ(value[0], 2);
}

struct RaceResult {
  double accuracy = 0;
  std::uint64_t staleness = 0, pushes = 0;
};

std::uint64_t number_in(Replica& replica, const std::string& name) {
  for (const StateSpan& s : replica.exchange().state())
    if (s.name == name) {
      std::uint64_t value = 0;
      std::memcpy(&value, s.bytes.data(), sizeof value);
      return value;
    }
  ADD_FAILURE() << "no " << name;
  return 0;
}

RaceResult race(const std::string& settings) {
  std::vector<RaceResult> all(racing_ranks);
  std::vector<Straggler> pauses;  // between reading and writing, so that others write in between on a single core too
  for (Rank r = 0; r < racing_ranks; ++r) pauses.push_back({.rank = r, .factor = 2});
  run_in_threads(racing_ranks, {}, [&](World& world) {
    RaceResult& mine = all[static_cast<std::size_t>(world.rank())];
    const SystemJob job{.system = fmt::format("[rule]\nname = 'movement_add'\n[exchange]\nname = 'shared_memory'\n{}\n"
                                              "[sync]\nname = 'async'\nwork = 'own'\n",
                                              settings),
                        .lr = 0.02,
                        .steps = 120,
                        .stragglers = pauses};
    mine.accuracy = run_system(world, job, [&](Replica& r) {
                      mine.staleness = number_in(r, "staleness");
                      mine.pushes = number_in(r, "pushes");
                    }).accuracy;
  });
  RaceResult sum{.accuracy = all[0].accuracy};
  for (const RaceResult& r : all) {
    EXPECT_EQ(r.accuracy, all[0].accuracy) << "ranks read different models";
    sum.staleness += r.staleness, sum.pushes += r.pushes;
  }
  return sum;
}

TEST(Hogwild, RacesAndStillLearns) {
  const RaceResult r = race("");
  EXPECT_EQ(r.pushes, racing_ranks * 120u);
  EXPECT_GT(r.staleness, 0u) << "nobody has written between a worker's reading and writing";
  EXPECT_GT(r.accuracy, 0.95);
}

TEST(Hogwild, InGroupsWithATokenLearnsToo) { EXPECT_GT(race("groups = 2").accuracy, 0.95); }

TEST(Hogwild, IsRefusedWhereThereIsNoCommonMemory) {
  Problems problems;
  const Composition c = composition_of(
      "[rule]\nname = 'movement_add'\n[exchange]\nname = 'shared_memory'\n[sync]\nname = 'async'\n", problems);
  check_composition(c, {.workers = 4}, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  check_composition(c, {.workers = 4, .shares_memory = false}, problems);
  ASSERT_EQ(problems.list().size(), 1u);
  EXPECT_NE(problems.list()[0].text.find("--world threads or processes"), std::string::npos);
}

}  // namespace
}  // namespace echelon
