// Rounds that do not wait for everybody: backup workers, and workers who hand in what they have.

#include <gtest/gtest.h>

#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

const std::vector<Straggler> slow_in_rounds{{.rank = 2, .factor = 4}};

std::string round_servers(const std::string& sync, const std::string& count = "'all'") {
  return "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = " + count + "\n[sync]\nname = " + sync +
         "\n";
}

std::vector<SystemResult> run_rounds(const std::string& system, const std::vector<Straggler>& stragglers,
                                     int steps = 40, int shards = 1) {
  return simulate_system(4, {.system = system, .steps = steps, .shards = shards, .stragglers = stragglers},
                         SimCluster::uniform(4, 1e-5, 1e9, 1e6));
}

TEST(BackupWorkers, OneStragglerCostsNothingButItsOwnWork) {
  const double without = run_rounds(round_servers("'quorum'"), {})[0].seconds;
  const auto with = run_rounds(round_servers("'quorum'"), slow_in_rounds);
  EXPECT_LT(with[0].seconds, 1.15 * without);  // the last round's straggler is waited for, once
  EXPECT_GT(run_rounds(round_servers("'bsp'"), slow_in_rounds)[0].seconds, 3 * without);
}

TEST(BackupWorkers, WhoIsLateIsDroppedCountedAndGoesOnWithTheOpenRound) {
  const auto with = run_rounds(round_servers("'quorum'"), slow_in_rounds);
  EXPECT_EQ(with[0].reached, 40);
  EXPECT_EQ(with[0].figures.at("updates"), 40) << "each round is closed once";
  const double dropped = with[0].figures.at("dropped");
  EXPECT_GE(dropped, 8);
  EXPECT_LE(dropped, 14) << "it does not compute for rounds that are closed already";
  const std::int64_t whole = 40 * 32, late = whole - with[0].samples;
  EXPECT_GE(late, whole / 4 / 2) << "what it leaves out is not told as done";
  EXPECT_LT(late, whole / 4);
}

TEST(BackupWorkers, WithoutBackupsItIsTheSynchronousTraining) {
  const auto bsp = run_rounds(round_servers("'bsp'"), {}),
             quorum = run_rounds(round_servers("'quorum'\nbackups = 0"), {});
  EXPECT_TRUE(same_bits(bsp[0].model, quorum[0].model));
  EXPECT_EQ(quorum[0].figures.at("dropped"), 0);
}

TEST(BackupWorkers, ManySeedsOfStragglersNeitherHangNorDisagree) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SystemJob job{.system = round_servers("'quorum'\nbackups = 2"),
                  .steps = 20,
                  .seed = seed,
                  .stragglers = {{.rank = -1, .factor = 7, .chance = 0.6}, {.rank = -1, .factor = 3, .chance = 0.5}}};
    const auto ranks = simulate_system(6, job, SimCluster::uniform(6, 2e-3, 1e6, 1e6), seed);
    EXPECT_EQ(ranks[0].reached, 20);
    for (const SystemResult& r : ranks) EXPECT_TRUE(same_bits(r.model, ranks[0].model)) << seed;
  }
}

TEST(AggressiveSynchronisation, AStepTakesTheFastestWorkersTimeAndUsesPartsOfTheOthersWork) {
  const auto without = run_rounds(round_servers("'a_bsp'"), {}, 10, 8),
             with = run_rounds(round_servers("'a_bsp'"), slow_in_rounds, 10, 8);
  EXPECT_EQ(without[0].figures.at("part_done"), 1);
  EXPECT_LT(with[0].seconds, 1.6 * without[0].seconds) << "at most one of eight shards, which take four times as long";
  EXPECT_GT(run_rounds(round_servers("'bsp'"), slow_in_rounds, 10, 8)[0].seconds, 3 * without[0].seconds);
  const double all = 10 * 32;
  EXPECT_GT(static_cast<double>(with[0].samples), 0.75 * all + 10) << "the slow worker's part counts";
  EXPECT_LT(static_cast<double>(with[0].samples), 0.9 * all);
  EXPECT_NEAR(with[0].figures.at("part_done"), static_cast<double>(with[0].samples) / all, 1e-9);
}

TEST(AggressiveSynchronisation, AmongEqualsItIsTheSynchronousTraining) {
  const auto bsp = run_rounds(round_servers("'bsp'"), {}, 10, 4),
             a_bsp = run_rounds(round_servers("'a_bsp'"), {}, 10, 4);
  EXPECT_TRUE(same_bits(bsp[0].model, a_bsp[0].model));
}

// What is handed in early is the mean gradient of the samples that were done.
TEST(AggressiveSynchronisation, APartialGradientIsTheMeanOverItsSamples) {
  const Case c{"mlp",
               table({{"hidden", integers({12})}}),
               {.kind = data::SyntheticOptions::Kind::blobs, .samples = 64, .shape = {16}, .classes = 4}};
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  const auto alone = make_world_alone();
  const auto gradient = [&](int shards, int batch, int stop_after) {
    Cores cores(1);
    LocalTrainer trainer(
        {.model = model.get(), .fields = data->fields(), .shards = shards, .seed = 3}, [] { return optim("sgd"); },
        *alone, cores);
    int asked = 0;
    if (stop_after > 0) trainer.hooks().keep_going = [&] { return ++asked < stop_after; };
    data::Loader loader(data, {.batches = {{0, static_cast<std::uint64_t>(batch)}},
                               .shards = static_cast<std::uint64_t>(shards),
                               .prefetch = 0});
    const StepResult r = trainer.compute(0, loader.at(0), batch);
    std::vector<float> g(trainer.gradient().begin(), trainer.gradient().end());
    g.push_back(static_cast<float>(r.samples));
    g.push_back(static_cast<float>(r.loss));
    return g;
  };
  const auto partial = gradient(8, 32, 3), reference = gradient(3, 12, 0);
  ASSERT_EQ(partial[partial.size() - 2], 12);
  for (std::size_t i = 0; i < partial.size(); ++i) EXPECT_NEAR(partial[i], reference[i], 1e-5);
}

}  // namespace
}  // namespace echelon
