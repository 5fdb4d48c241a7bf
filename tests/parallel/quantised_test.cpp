// Law 1 with few bits: rounding by chance, shared exponents and scales belong to shards and steps, never to cores.
#include <gtest/gtest.h>

#include <cmath>

#include "data/formats/synthetic.h"
#include "models/quantised.h"
#include "parallel/step/trainer.h"
#include "tests/parallel/small_networks.h"
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
