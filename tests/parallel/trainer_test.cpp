#include "parallel/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "data/formats/synthetic.h"
#include "models/zoo.h"
#include "parallel/evaluator.h"
#include "tests/support/allocations.h"

namespace echelon {
namespace {

Options table(std::initializer_list<std::pair<const std::string, Option>> items) {
  Options o;
  o.items = items;
  return o;
}
Option integers(std::initializer_list<std::int64_t> values) {
  Option list;
  std::vector<Option> items;
  for (std::int64_t v : values) items.push_back(Option{v});
  list.value = std::move(items);
  return list;
}
Option integer(std::int64_t v) { return Option{v}; }
Option number(double v) { return Option{v}; }
Option text(const std::string& v) { return Option{v}; }

Optim optim(const std::string& name, Options settings = {}) {
  settings.items["name"] = text(name);
  Problems problems;
  OptionReader reader(settings, problems);
  Optim result = read_optim(reader);
  problems.throw_if_any("test");
  return result;
}

// A small network of each kind, with data for it.
struct Case {
  std::string name;
  Options options;
  data::SyntheticOptions data;
};

std::vector<Case> cases() {
  using Kind = data::SyntheticOptions::Kind;
  const data::SyntheticOptions images{.kind = Kind::images, .samples = 60, .shape = {3, 32, 32}, .classes = 4};
  const data::SyntheticOptions digits{.kind = Kind::images, .samples = 60, .shape = {1, 28, 28}, .classes = 4};
  const data::SyntheticOptions sequences{.kind = Kind::blobs, .samples = 60, .shape = {5, 6}, .classes = 4};
  const data::SyntheticOptions tokens{.kind = Kind::tokens, .samples = 60, .shape = {9}, .classes = 11};
  return {{"mlp", table({{"hidden", integers({17, 9})}, {"dropout", number(0.2)}}), digits},
          {"lenet5", {}, digits},
          {"resnet20", {}, images},
          {"lstm", table({{"hidden", integer(7)}}), sequences},
          {"gru", table({{"hidden", integer(7)}}), sequences},
          {"gpt", table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(1)}}), tokens},
          {"gan", {}, digits},
          {"autoencoder", {}, digits}};
}

models::InputSpec inputs_of(const data::Dataset& d) {
  models::InputSpec spec;
  spec.input = {d.fields()[0].name, Type{d.fields()[0].dtype, d.fields()[0].shape}};
  if (d.fields().size() > 1) spec.target = {d.fields()[1].name, Type{d.fields()[1].dtype, d.fields()[1].shape}};
  spec.classes = d.info().classes;
  return spec;
}

// Trains some steps, an uneven last batch among them; returns all weights.
std::vector<float> train(const Case& c, const std::string& rule, int cores_count, int steps, int shards = 4) {
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  Cores cores(cores_count);
  data::Loader loader(data, {.seed = 3, .batches = {{0, 18}}, .shards = static_cast<std::uint64_t>(shards)});
  Trainer trainer(
      *model, [&] { return optim(rule); }, data->fields(), shards, 3, cores);
  for (int s = 0; s < steps; ++s)
    trainer.step(static_cast<std::uint64_t>(s), 0.01, loader.at(static_cast<std::uint64_t>(s)));
  const auto p = trainer.parameters();
  return {p.begin(), p.end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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
    Cores cores(2);
    data::Loader loader(data, {.batches = {{0, 16}}, .drop_partial = true, .shards = 4, .prefetch = 0});
    Trainer trainer(
        *model, [&] { return optim("adam"); }, data->fields(), 4, 3, cores);
    for (std::uint64_t s = 0; s < 3; ++s) trainer.step(s, 0.01, loader.at(s));
    const std::int64_t before = test::allocations();
    for (std::uint64_t s = 3; s < 8; ++s) trainer.step(s, 0.01, loader.at(s));
    EXPECT_EQ(test::allocations() - before, 0);
  }
}

TEST(Trainer, ThePlanSaysHowMuchMemoryIsUsed) {
  const Case c = cases()[1];
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  Cores cores(2);
  data::Loader loader(data, {.batches = {{0, 16}}, .shards = 2, .prefetch = 0});
  Trainer trainer(
      *model, [&] { return optim("momentum"); }, data->fields(), 2, 3, cores);
  trainer.step(0, 0.01, loader.at(0));
  const auto plan = compile(model->training(8)[0].graph);
  const std::size_t flat = trainer.table().floats() * sizeof(float);
  // Weights, momentum, one contribution a core, one arena a core.
  EXPECT_EQ(trainer.planned_bytes(), 4 * flat + 2 * plan.memory.arena_bytes);
}

TEST(Trainer, ALossThatIsNoNumberStopsTheStepAndNamesThePlace) {
  const Case c = cases()[1];
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  Cores cores(2);
  data::Loader loader(data, {.batches = {{0, 16}}, .shards = 4});
  Trainer trainer(
      *model, [&] { return optim("sgd"); }, data->fields(), 4, 3, cores);
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
  Cores cores(2), one(1);
  data::Loader loader(data, {.batches = {{0, 20}}, .shards = 4});
  Trainer trainer(
      *model, [&] { return optim("momentum"); }, data->fields(), 4, 3, cores);
  const double first = trainer.step(0, 0.02, loader.at(0)).loss;
  double last = 0;
  for (std::uint64_t s = 1; s < 60; ++s) last = trainer.step(s, 0.02, loader.at(s)).loss;
  EXPECT_LT(last, first / 2);
  Evaluator two_cores(*model, trainer.table(), trainer.parameters(), test_data, 16, cores);
  Evaluator one_core(*model, trainer.table(), trainer.parameters(), test_data, 16, one);
  const Evaluation a = two_cores.run(), b = one_core.run();
  EXPECT_EQ(a.samples, 60);
  EXPECT_NEAR(a.loss, b.loss, 1e-6);
  EXPECT_EQ(a.accuracy, b.accuracy);
  EXPECT_GT(a.accuracy, 0.5);
}

}  // namespace
}  // namespace echelon
