// Weights that everybody writes without a lock: the races are real, training bears them, and groups with a token lose
// nothing by being apart.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "parallel/exchanges/racing_weights.h"
#include "tests/parallel/systems.h"
#include "world/launch.h"
#include "world/os/numa.h"

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
  for (int g = 0; g < groups; ++g) weights.start(g, std::vector<float>(4, 10));
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
  std::vector<float> values(4), first(4);
  weights.read(0, first);
  for (int g = 0; g < groups; ++g) {  // all alike, with about all of every change
    weights.read(g, values);
    EXPECT_EQ(values, first);
    EXPECT_NEAR(values[0], 10 + 24 * groups, 0.2 * 24 * groups);
    EXPECT_EQ(values[1], 10);
    EXPECT_NEAR(values[2], 10 + 12 * groups, 0.2 * 12 * groups);
  }
}

// With two groups beta^2 + beta = 1, and lambda = 1 - beta.
TEST(RacingWeights, AreMixedWithTheNextGroupsByTheOneThatHasTheToken) {
  Memory memory(1, 2);
  RacingWeights weights(memory.bytes(), 1, 2, RacingWeights::Add::racing, 1);
  const float beta = (std::sqrt(5.0f) - 1) / 2;
  EXPECT_NEAR(token_decay(2), beta, 1e-6);
  std::vector<float> one{1}, value(1);
  weights.add(0, one);  // and passes the token
  weights.read(0, value);
  EXPECT_NEAR(value[0], beta, 1e-6);  // (1 - lambda) of it: the next had nothing
  weights.read(1, value);
  EXPECT_NEAR(value[0], beta, 1e-6);
  weights.add(1, one);  // 1 + beta, of which it mixes 1 - beta with what group 0 has
  weights.read(1, value);
  EXPECT_NEAR(value[0], (1 - beta) * beta + beta * (1 + beta), 1e-6);
  weights.read(0, value);
  EXPECT_NEAR(value[0], beta + beta * (1 + beta), 1e-6);
}

TEST(RacingWeights, AChangeDecaysOnItsWayRoundAndAllGroupsEndWithAboutAllOfIt) {
  for (const int groups : {2, 3, 4}) {
    Memory memory(1, groups);
    RacingWeights weights(memory.bytes(), 1, groups, RacingWeights::Add::racing, 1);
    weights.add(0, std::vector<float>{1});
    weights.drain();
    std::vector<float> value(1), first(1);
    weights.read(0, first);
    EXPECT_NEAR(first[0], 1, 0.3) << groups;
    for (int g = 1; g < groups; ++g) {
      weights.read(g, value);
      EXPECT_EQ(value, first) << groups;
    }
  }
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

// A worker alone whose cores race makes a step of each part of its batch; without racing it makes one of all.
std::vector<float> after_one_batch(bool race, int cores) {
  const auto data = data::make_synthetic(
      "train", {.kind = data::SyntheticOptions::Kind::blobs, .samples = 64, .shape = {16}, .classes = 4});
  const auto model = models::make_model("mlp", inputs_of(*data), table({{"hidden", integers({12})}}));
  LocalTeam lone(cores);
  LocalTrainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3, .race = race},
      [] { return optim("sgd"); }, *lone.world, lone.cores);
  data::Loader loader(data, {.seed = 3, .batches = {{0, 64}}, .shards = 4, .prefetch = 0});
  trainer.hooks().race_rate = 0.5;
  trainer.compute(0, loader.at(0, 0), 64);
  if (!race) trainer.update(0, 0.5);
  return {trainer.parameters().begin(), trainer.parameters().end()};
}

TEST(RacingCores, MoveTheWeightsWithinABatch) {
  const auto one_step = after_one_batch(false, 1), four = after_one_batch(true, 1), raced = after_one_batch(true, 2);
  const auto start = after_one_batch(true, 1);
  double differ = 0, moved = 0, far = 0;
  for (std::size_t i = 0; i < one_step.size(); ++i) {
    differ = std::max<double>(differ, std::abs(four[i] - one_step[i]));
    far = std::max<double>(far, std::abs(raced[i] - one_step[i]));
    moved = std::max<double>(moved, std::abs(one_step[i]));
  }
  EXPECT_GT(differ, 1e-5) << "later parts see what earlier ones have moved";
  EXPECT_LT(differ, 0.1);
  EXPECT_LT(far, 0.1);
  EXPECT_TRUE(same_bits(four, start)) << "one core races with nobody";
}

TEST(RacingCores, OfSeveralNodesLearnOverANetworkThatLosesMessages) {
  SystemJob job{.system =
                    "[rule]\nname = 'grad_mean'\n[exchange]\nname = 'partial'\nslices = 4\ndrop = 0.1\nracing = true\n"
                    "[sync]\nname = 'async'\nwork = 'own'\n",
                .rule = "sgd",
                .lr = 0.3,
                .steps = 120,
                .shards = 2,
                .cores = 2};
  EXPECT_GT(thread_system(2, job)[0].accuracy, 0.95);
}

TEST(Hogwild, AGroupForEachNumaNodeIsOneOnAMachineWithOne) {
  const auto nodes = numa_nodes();
  const auto all = thread_system(2, {.system = "[rule]\nname = 'movement_add'\n[exchange]\nname = 'shared_memory'\n"
                                               "groups = 0\n[sync]\nname = 'async'\nwork = 'own'\n",
                                     .steps = 4});
  EXPECT_EQ(all[0].figures.at("groups"), static_cast<double>(std::min<std::size_t>(2, nodes.size())));
}

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
