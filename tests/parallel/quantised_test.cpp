// Law 1 with few bits: rounding by chance, shared exponents and scales belong to shards and steps, never to cores.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/formats/synthetic.h"
#include "graph/ops/autoflex.h"
#include "models/wrappers/halp.h"
#include "models/wrappers/quantised.h"
#include "parallel/step/trainer.h"
#include "tests/parallel/small_networks.h"
#include "tests/parallel/systems.h"
#include "tests/support/allocations.h"

namespace echelon {
namespace {

using namespace test;

Options quantised(Options options, const std::string& scheme) {
  auto q = std::make_shared<Options>(table({{"scheme", text(scheme)}}));
  if (scheme == "halp")  // so that five steps see all of a period
    q->items["gather_steps"] = integer(1), q->items["period_steps"] = integer(4);
  else
    q->items["ends"] = Option{true};
  q->where = "quantise";
  options.items["quantise"].value = std::move(q);
  return options;
}

std::vector<float> train(const Case& c, int cores, std::uint64_t seed = 3) {
  const auto data = data::make_synthetic("train", c.data);
  const auto model = models::make_model(c.name, inputs_of(*data), c.options);
  LocalTeam alone(cores);
  data::Loader loader(data, {.seed = 3, .batches = {{0, 18}}, .shards = 4});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = seed}, [&] { return optim("momentum"); },
      alone.team);
  for (std::uint64_t s = 0; s < 5; ++s) trainer.step(s, 0.01, loader.at(s));
  const auto p = trainer.parameters();
  return {p.begin(), p.end()};
}

TEST(QuantisedTrainer, WeightsHaveTheSameBitsOnAnyNumberOfCores) {
  for (const Case& plain : cases())
    for (const std::string& scheme : models::quantisation_schemes()) {
      if (plain.name != "lenet5" && plain.name != "mlp" && plain.name != "gpt" && scheme != "fixed") continue;
      SCOPED_TRACE(plain.name + " " + scheme);
      const Case c{plain.name, quantised(plain.options, scheme), plain.data};
      const auto one = train(c, 1);
      for (float w : one) ASSERT_TRUE(std::isfinite(w));
      for (int cores : {2, 3}) EXPECT_TRUE(same_bits(one, train(c, cores))) << cores << " cores";
      EXPECT_FALSE(same_bits(one, train(plain, 1))) << "quantisation changes nothing";
    }
}

// With settings of the quantiser besides its scheme, and of the update rule.
struct FewBits {
  std::string scheme;
  std::vector<std::pair<std::string, Option>> settings = {};
  std::string stored = {};  // weights are
};

struct TrainedFewBits {
  std::vector<float> weights;
  std::map<std::string, std::vector<float>> by_name = {};
};

TrainedFewBits train_with(const FewBits& how, int cores, int steps = 5) {
  const Case plain = cases()[1];
  Options options = quantised(plain.options, how.scheme);
  auto quantiser = std::make_shared<Options>(*std::get<Option::Table>(options.items["quantise"].value));
  for (const auto& [key, value] : how.settings) quantiser->items[key] = value;
  options.items["quantise"].value = std::move(quantiser);
  Options settings;
  if (!how.stored.empty()) {
    auto stored = std::make_shared<Options>(test::table({{"format", text(how.stored)}}));
    stored->where = "stored";
    settings.items["stored"].value = std::move(stored);
  }
  const auto data = data::make_synthetic("train", plain.data);
  const auto model = models::make_model(plain.name, inputs_of(*data), options);
  LocalTeam alone(cores);
  data::Loader loader(data, {.seed = 3, .batches = {{0, 18}}, .shards = 4});
  Trainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3},
      [&] { return optim("momentum", settings); }, alone.team);
  for (int s = 0; s < steps; ++s)
    trainer.step(static_cast<std::uint64_t>(s), 0.01, loader.at(static_cast<std::uint64_t>(s)));
  TrainedFewBits result{.weights = {trainer.parameters().begin(), trainer.parameters().end()}};
  for (const auto& e : trainer.table().entries())
    result.by_name[e.parameter.name] = {trainer.parameters().begin() + static_cast<std::ptrdiff_t>(e.offset),
                                        trainer.parameters().begin() + static_cast<std::ptrdiff_t>(e.offset + e.size)};
  return result;
}

TEST(FewBitErrors, ChangeTheGradientsAndHaveTheSameBitsOnAnyNumberOfCores) {
  for (const FewBits& how :
       {FewBits{"dorefa", {{"errors_bits", integer(6)}}}, FewBits{"fixed", {{"errors_bits", integer(16)}}},
        FewBits{"flexpoint", {{"errors_bits", integer(8)}, {"predict", Option{true}}}}}) {
    SCOPED_TRACE(how.scheme);
    const auto one = train_with(how, 1);
    for (const float w : one.weights) ASSERT_TRUE(std::isfinite(w));
    EXPECT_TRUE(same_bits(one.weights, train_with(how, 3).weights));
    EXPECT_FALSE(same_bits(one.by_name.at("conv2.weight"), train_with({how.scheme}, 1).by_name.at("conv2.weight")));
  }
}

TEST(StoredWeights, AreInTheFormatAfterEveryStep) {
  for (const int cores : {1, 3}) {
    const auto fixed = train_with({"fixed", {}, "fixed"}, cores);
    for (const auto& [name, values] : fixed.by_name)
      if (name.ends_with("weight") || name.ends_with("bias")) {
        for (const float w : values)
          ASSERT_EQ(std::ldexp(w, 14), std::nearbyint(std::ldexp(w, 14))) << name << " " << w;
      }
    EXPECT_TRUE(same_bits(fixed.weights, train_with({"fixed", {}, "fixed"}, 1).weights));
  }
  const auto flex = train_with({"flexpoint", {}, "flexpoint"}, 2).by_name.at("conv2.weight");
  float most = 0;
  for (const float w : flex) most = std::max(most, std::abs(w));
  for (const float w : flex) {  // one block: of 16 bits, and an exponent up to twice as large as needed
    const double steps = std::ldexp(static_cast<double>(w), 15) / std::exp2(std::ceil(std::log2(4 * most)));
    ASSERT_EQ(8 * steps, std::nearbyint(8 * steps)) << w;
  }
}

// A model that adds 1e-6 of its weights in each step, far less than the format's 2^-14: it moves all the same.
TEST(StoredWeights, MoveBySmallStepsOnAverage) {
  Options settings;
  auto stored = std::make_shared<Options>(table({{"format", text("fixed")}}));
  stored->where = "stored";
  settings.items["stored"].value = std::move(stored);
  Optim o = optim("sgd", settings);
  std::vector<float> w(20000, 0.5f), g(20000);
  Update update(std::move(o.rule), {}, {{0, w.size()}}, w, g);
  for (int step = 1; step <= 100; ++step) {
    std::ranges::fill(g, 1.0f);
    update.run_alone({.number = step, .lr = 1e-6});
  }
  double mean = 0;
  for (const float x : w) mean += x / static_cast<double>(w.size());
  EXPECT_NEAR(mean, 0.5 - 1e-4, 5e-6);
}

TEST(Autoflex, PredictsTheExponentFromEarlierSteps) {
  const auto trained = train_with({"flexpoint", {{"predict", Option{true}}, {"errors_bits", integer(16)}}}, 2, 12);
  int peaks = 0;
  for (const auto& [name, means] : trained.by_name) {
    if (!name.ends_with("_peak")) continue;
    ++peaks;
    ASSERT_EQ(means.size(), 2u);
    EXPECT_GT(means[0], 0) << name;
    EXPECT_GE(means[1], means[0] * means[0] * 0.99f) << name;
  }
  EXPECT_EQ(peaks, 3 * 5) << "weights, input and errors of five layers";
  EXPECT_GT(ops::autoflex_bound(1, 1.01f), 2.0f);
  EXPECT_EQ(ops::autoflex_bound(1, 1), 2);
  EXPECT_EQ(ops::autoflex_step(1.5f, 16), std::ldexp(1.0f, 1 - 15));
}

// What each of four workers has gathered is of its own part; after the gathering all have the mean.
TEST(Halp, AllWorkersAgreeOnOneFullGradient) {
  const auto gathered = [](int steps) {
    SystemJob job{.system = "[rule]\nname = 'grad_mean'\n", .rule = "sgd", .steps = steps};
    auto q = std::make_shared<Options>(
        table({{"scheme", text("halp")}, {"gather_steps", integer(3)}, {"period_steps", integer(50)}}));
    q->where = "quantise";
    job.network.options.items["quantise"].value = std::move(q);
    std::vector<std::vector<float>> full(4);
    run_in_simulation(SimCluster::uniform(4, 1e-5, 1e9), {}, [&](World& world) {
      run_system(world, job, [&](Replica& r) {
        for (const auto& e : r.table().entries())
          if (models::is_full_gradient(e.parameter.name))
            for (const float x : r.trainer().parameters().subspan(e.offset, e.size))
              full[static_cast<std::size_t>(world.rank())].push_back(x);
      });
    }).throw_if_failed();
    return full;
  };
  const auto before = gathered(3), after = gathered(4);  // steps 1, 2 and 3 gather
  ASSERT_FALSE(before[0].empty());
  EXPECT_FALSE(same_bits(before[0], before[1]));
  for (int r = 1; r < 4; ++r) EXPECT_TRUE(same_bits(after[0], after[static_cast<std::size_t>(r)]));
  double size = 0;
  for (const float x : after[0]) size += std::abs(x);
  EXPECT_GT(size, 0);
}

TEST(QuantisedTrainer, AStepAllocatesNothing) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer has its own malloc";
  for (const std::string& scheme : models::quantisation_schemes()) {
    SCOPED_TRACE(scheme);
    const Case c{"lenet5", quantised({}, scheme), cases()[1].data};
    const auto data = data::make_synthetic("train", c.data);
    const auto model = models::make_model(c.name, inputs_of(*data), c.options);
    LocalTeam alone(2);
    data::Loader loader(data, {.batches = {{0, 16}}, .drop_partial = true, .shards = 4, .prefetch = 0});
    Trainer trainer(
        {.model = model.get(), .fields = data->fields(), .shards = 4, .seed = 3}, [&] { return optim("adam"); },
        alone.team);
    for (std::uint64_t s = 0; s < 3; ++s) trainer.step(s, 0.01, loader.at(s));
    const std::int64_t before = allocations();
    for (std::uint64_t s = 3; s < 8; ++s) trainer.step(s, 0.01, loader.at(s));
    EXPECT_EQ(allocations() - before, 0);
  }
}

}  // namespace
}  // namespace echelon
