#include "parallel/step/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "data/formats/synthetic.h"
#include "models/zoo.h"
#include "parallel/step/evaluator.h"
#include "parallel/step/local_trainer.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/allocations.h"

namespace echelon {
namespace {

using namespace test;

// Trains some steps, an uneven last batch among them; returns all weights.
std::vector<float> train(const Case& c, const std::string& rule, int cores_count, int steps, int shards = 4) {
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(cores_count);
  data::Loader loader(data, {.seed = 3, .batches = {{0, 18}}, .shards = static_cast<std::uint64_t>(shards)});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = shards, .seed = 3}, [&] { return optim(rule); },
      alone.team);
  for (int s = 0; s < steps; ++s)
    trainer.step(static_cast<std::uint64_t>(s), 0.01, loader.at(static_cast<std::uint64_t>(s)));
  const auto p = trainer.parameters();
  return {p.begin(), p.end()};
}

TEST(Trainer, WeightsHaveTheSameBitsOnAnyNumberOfCoresForEveryNetwork) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto one = train(c, "momentum", 1, 5);
    for (float w : one) ASSERT_TRUE(std::isfinite(w));
    for (int cores : {2, 3}) EXPECT_TRUE(same_bits(one, train(c, "momentum", cores, 5))) << cores << " cores";
    EXPECT_FALSE(same_bits(one, train(c, "momentum", 1, 4))) << "training changes nothing";
  }
}

TEST(Trainer, WeightsHaveTheSameBitsOnAnyNumberOfCoresForEveryUpdateRule) {
  Case c = cases()[0];
  for (const std::string& rule : rule_names()) {
    SCOPED_TRACE(rule);
    EXPECT_TRUE(same_bits(train(c, rule, 1, 6), train(c, rule, 2, 6)));
  }
}

TEST(Trainer, ManyShardsGiveTheGradientOfTheBigBatch) {
  // No dropout and no batch norm: then slices change nothing but the rounding.
  const Case c{"lenet5", {}, cases()[1].data};
  const auto whole = train(c, "sgd", 1, 4, 1), slices = train(c, "sgd", 1, 4, 6);
  ASSERT_EQ(whole.size(), slices.size());
  EXPECT_FALSE(same_bits(whole, slices));
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], slices[i], 1e-5);
}

TEST(Trainer, AStepAllocatesNothing) {
  if (!test::allocations_are_counted()) GTEST_SKIP() << "a sanitizer has its own malloc";
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto data = data::make_synthetic("train", c.data);
    const auto model = models::make_model(c.name, inputs_of(*data), c.options);
    LocalTeam alone(2);
    data::Loader loader(data, {.batches = {{0, 16}}, .drop_partial = true, .shards = 4, .prefetch = 0});
    Trainer trainer(
        {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3}, [&] { return optim("adam"); },
        alone.team);
    for (std::uint64_t s = 0; s < 3; ++s) trainer.step(s, 0.01, loader.at(s));
    const std::int64_t before = test::allocations();
    for (std::uint64_t s = 3; s < 8; ++s) trainer.step(s, 0.01, loader.at(s));
    EXPECT_EQ(test::allocations() - before, 0);
  }
}

TEST(LocalTrainer, AStepInTwoHalvesThatSendsBucketsAllocatesNothing) {
  if (!test::allocations_are_counted()) GTEST_SKIP() << "a sanitizer has its own malloc";
  const Case c = cases()[1];
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(2);
  data::Loader loader(data, {.batches = {{0, 16}}, .drop_partial = true, .shards = 4, .prefetch = 0});
  LocalTrainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3}, [&] { return optim("adam"); },
      *alone.world, alone.cores);
  std::atomic<int> buckets = 0;
  trainer.hooks().announce = true;
  trainer.send_buckets(1, [&](std::size_t) { ++buckets; });
  const auto step = [&](std::uint64_t s) {
    trainer.compute(s, loader.at(s), 16);
    trainer.update(s, 0.01);
  };
  for (std::uint64_t s = 0; s < 3; ++s) step(s);
  const std::int64_t before = test::allocations();
  for (std::uint64_t s = 3; s < 8; ++s) step(s);
  EXPECT_EQ(test::allocations() - before, 0);
  EXPECT_GT(buckets, 8);
}

TEST(Trainer, ThePlanSaysHowMuchMemoryIsUsed) {
  const Case c = cases()[1];
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(2);
  data::Loader loader(data, {.batches = {{0, 16}}, .shards = 2, .prefetch = 0});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 2, .seed = 3}, [&] { return optim("momentum"); },
      alone.team);
  trainer.step(0, 0.01, loader.at(0));
  const auto plan = compile(model->training(8)[0].graph);
  const std::size_t flat = trainer.table().floats() * sizeof(float);
  // Weights, momentum, one contribution a core, one arena a core; and a few numbers such as the losses.
  EXPECT_GE(trainer.planned_bytes(), 4 * flat + 2 * plan.memory.arena_bytes);
  EXPECT_LE(trainer.planned_bytes(), 4 * flat + 2 * plan.memory.arena_bytes + 512);
}

TEST(Trainer, ALossThatIsNoNumberStopsTheStepAndNamesThePlace) {
  const Case c = cases()[1];
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(2);
  data::Loader loader(data, {.batches = {{0, 16}}, .shards = 4});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3}, [&] { return optim("sgd"); },
      alone.team);
  const auto& entry = trainer.table().find("conv2.weight");
  for (std::size_t i = 0; i < entry.size; ++i) trainer.parameters()[entry.offset + i] = 3e38f;
  const std::vector<float> before(trainer.parameters().begin(), trainer.parameters().end());
  try {
    trainer.step(7, 0.1, loader.at(0));
    FAIL() << "a loss that is no number was accepted";
  } catch (const NotFinite& e) {
    EXPECT_NE(std::string(e.what()).find("step 7"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("layer '"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(same_bits(before, {trainer.parameters().begin(), trainer.parameters().end()}));
}

TEST(Trainer, TrainingLowersTheLossAndEvaluationAgreesOnAnyNumberOfCores) {
  const Case c{"mlp", table({{"hidden", integers({32})}}), cases()[1].data};
  const auto data = data::make_synthetic("train", c.data);
  const auto test_data = data::make_synthetic("test", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(2), one(1);
  data::Loader loader(data, {.batches = {{0, 20}}, .shards = 4});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3}, [&] { return optim("momentum"); },
      alone.team);
  const double first = trainer.step(0, 0.02, loader.at(0)).loss;
  double last = 0;
  for (std::uint64_t s = 1; s < 60; ++s) last = trainer.step(s, 0.02, loader.at(s)).loss;
  EXPECT_LT(last, first / 2);
  Evaluator two_cores(*model, trainer.table(), trainer.parameters(), test_data, 16, alone.team);
  Evaluator one_core(*model, trainer.table(), trainer.parameters(), test_data, 16, one.team);
  const Evaluation a = two_cores.run(), b = one_core.run();
  EXPECT_EQ(a.samples, 60);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.accuracy, b.accuracy);
  EXPECT_GT(a.accuracy, 0.5);
}

}  // namespace
}  // namespace echelon
