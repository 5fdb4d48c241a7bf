// One training on several ranks, in every world: the same bits as alone.

#include <gtest/gtest.h>

#include <cstring>

#include "parallel/step/evaluator.h"
#include "parallel/step/trainer.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/temp_dir.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

struct Job {
  Case network;
  std::string rule = "momentum";
  int shards = 4, cores = 1, steps = 5;
  std::uint64_t batch = 18;
  bool apart = false;  // without memory in common, even where there is some
};

// This rank's part in some steps, an uneven last batch among them; returns all weights and the loss on other data.
std::vector<float> train(World& world, const Job& s) {
  const auto data = data::make_synthetic("train", s.network.data);
  const auto model = models::make_model(s.network.name, inputs_of(*data), s.network.options);
  Cores cores(s.cores);
  Team team(world, cores, s.apart);
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = s.shards, .seed = 3}, [&] { return optim(s.rule); },
      team);
  const ShardRange own = trainer.own_shards();
  data::Loader loader(
      data, {.seed = 3,
             .batches = {{0, s.batch}},
             .shards = static_cast<std::uint64_t>(s.shards),
             .own = data::IndexRange{static_cast<std::uint64_t>(own.first), static_cast<std::uint64_t>(own.count())},
             .prefetch = 0});
  for (int step = 0; step < s.steps; ++step)
    trainer.step(static_cast<std::uint64_t>(step), 0.01, loader.at(static_cast<std::uint64_t>(step)));
  std::vector<float> result(trainer.parameters().begin(), trainer.parameters().end());
  std::vector<Metric> metrics;
  for (const std::string& name : metric_names(model->task()))
    if (name != "loss") metrics.push_back(*metric_named(name));
  Evaluator evaluator(*model, trainer.table(), trainer.parameters(), data::make_synthetic("test", s.network.data), 40,
                      team, metrics);
  const Evaluation test = evaluator.run();
  EXPECT_EQ(test.metrics.empty(), metrics.empty());
  result.push_back(static_cast<float>(test.loss));
  result.push_back(static_cast<float>(test.accuracy));
  for (const auto& [name, value] : test.metrics) {  // every bit of them
    float halves[2];
    std::memcpy(halves, &value, sizeof value);
    result.insert(result.end(), halves, halves + 2);
  }
  return result;
}

std::vector<float> train_alone(const Job& s) {
  const auto alone = make_world_alone();
  return train(*alone, s);
}

// Every rank writes what it has to a file: ranks may be processes.
std::vector<std::vector<float>> train_on(const WorldUnderTest& world, int ranks, const Job& s) {
  const TempDir dir;
  const auto path = [&](int rank) { return dir.path() + "/" + std::to_string(rank); };
  world.run(ranks, [&](World& w) {
    const auto weights = train(w, s);
    write_file_atomically(*make_real_disk(), path(w.rank()), std::as_bytes(std::span(weights)));
  });
  std::vector<std::vector<float>> all;
  for (int r = 0; r < ranks; ++r) {
    const auto bytes = read_file(*make_real_disk(), path(r), 1 << 30);
    auto& weights = all.emplace_back(bytes.size() / sizeof(float));
    std::memcpy(weights.data(), bytes.data(), bytes.size());
  }
  return all;
}

void expect_as_alone(const WorldUnderTest& world, int ranks, const Job& s, const std::vector<float>& alone) {
  const auto all = train_on(world, ranks, s);
  for (std::size_t r = 0; r < all.size(); ++r)
    EXPECT_TRUE(same_bits(all[r], alone))
        << "rank " << r << " of " << ranks << " in " << world.name << (s.apart ? ", without common memory" : "");
}

class Ranks : public testing::TestWithParam<std::size_t> {
 protected:
  const WorldUnderTest& world() const { return all_worlds()[GetParam()]; }
};

TEST_P(Ranks, WeightsAndLossHaveTheSameBitsOnAnyNumberOfRanks) {
  for (bool apart : {false, true}) {
    const Job s{.network = cases()[1], .shards = 6, .apart = apart};
    const auto alone = train_alone(s);
    for (int ranks : {1, 2, 3, 4, 5, 8}) expect_as_alone(world(), ranks, s, alone);
  }
}

TEST_P(Ranks, EveryNetworkTrainsOnThreeRanksAsAlone) {
  if (world().name != "processes" && world().name != "sim") GTEST_SKIP() << "one world of each kind is enough for this";
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto alone = train_alone({.network = c});
    for (bool apart : {false, true}) expect_as_alone(world(), 3, {.network = c, .apart = apart}, alone);
  }
}

TEST_P(Ranks, EveryUpdateRuleWorksOnTwoRanksAsAlone) {
  if (world().name != "threads" && world().name != "sim") GTEST_SKIP() << "one world of each kind is enough for this";
  for (const std::string& rule : rule_names()) {
    SCOPED_TRACE(rule);
    for (bool apart : {false, true}) {
      const Job s{.network = cases()[0], .rule = rule, .apart = apart};
      expect_as_alone(world(), 2, s, train_alone(s));
    }
  }
}

// Buckets are chosen in the third step, whose first shard has no sample here.
TEST_P(Ranks, ABatchWithFewerSamplesThanShardsMayBeTheOneInWhichBucketsAreChosen) {
  if (world().name != "threads" && world().name != "sim") GTEST_SKIP() << "one world of each kind is enough for this";
  Job s{.network = cases()[1], .shards = 6, .batch = 19, .apart = true};
  s.network.data.samples = 40;
  expect_as_alone(world(), 3, s, train_alone(s));
}

TEST_P(Ranks, ARankCanHaveSeveralCores) {
  if (!world().real_time) GTEST_SKIP() << "a simulated rank has one core";
  for (bool apart : {false, true}) {
    Job s{.network = cases()[2], .shards = 5, .apart = apart};
    const auto alone = train_alone(s);
    s.cores = 2;
    expect_as_alone(world(), 2, s, alone);
  }
}

TEST_P(Ranks, WishesToStopReachEveryRankInTheSameStep) {
  const Case c = cases()[0];
  for (bool apart : {false, true})
    world().run(3, [&](World& w) {
      const auto data = data::make_synthetic("train", c.data);
      const auto model = models::make_model(c.name, inputs_of(*data), c.options);
      Cores cores(1);
      Team team(w, cores, apart);
      Trainer trainer(
          {.model = model.get(), .fields = data->fields(), .shards = 3, .seed = 3}, [&] { return optim("sgd"); }, team);
      data::Loader loader(data, {.batches = {{0, 12}}, .shards = 3, .prefetch = 0});
      for (std::uint64_t step = 0; step < 3; ++step) {
        const bool stop = trainer.step(step, 0.01, loader.at(step), step == 1 && w.rank() == 2).stop;
        require(stop == (step == 1), "all stop after step 1, and not before");
      }
    });
}

TEST_P(Ranks, ALossThatIsNoNumberIsExplainedByTheRankThatHasIt) {
  const Case c = cases()[1];
  for (bool apart : {false, true}) {
    try {
      world().run(3, [&](World& w) {
        const auto data = data::make_synthetic("train", c.data);
        const auto model = models::make_model(c.name, inputs_of(*data), c.options);
        Cores cores(1);
        Team team(w, cores, apart);
        Trainer trainer(
            {.model = model.get(), .fields = data->fields(), .shards = 3, .seed = 3}, [&] { return optim("sgd"); },
            team);
        data::Loader loader(data, {.batches = {{0, 12}}, .shards = 3, .prefetch = 0});
        for (std::uint64_t step = 0; step < 20; ++step) trainer.step(step, 1e20, loader.at(step));
      });
      FAIL() << "it was accepted";
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find("the loss is not a number"), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find("was lost"), std::string::npos) << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Ranks, testing::Range<std::size_t>(0, all_worlds().size()),
                         [](const auto& p) { return all_worlds()[p.param].name; });

}  // namespace
}  // namespace echelon
