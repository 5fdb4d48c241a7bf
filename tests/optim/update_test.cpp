#include "optim/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "optim/optim.h"

namespace echelon {
namespace {

// A model with parameters of awkward sizes, gaps between them (as padding makes) and a statistic in the middle.
std::vector<TrainedSpan> segments() {
  return {{0, 5000},     {5008, 3, 1, false}, {5024, 64, 1, false, true, 0.25f}, {5088, 4096}, {9184, 1},
          {9200, 13001}, {22208, 7}};
}
constexpr std::size_t floats = 22224;

struct Model {
  std::vector<float> w = std::vector<float>(floats), g = std::vector<float>(floats);
  void start() {
    const Stream random({.seed = 1, .layer = stream_layer("weights")});
    for (std::size_t i = 0; i < floats; ++i) w[i] = random.uniform(i) - 0.5f;
  }
  void gradient(std::uint32_t step) {
    const Stream random({.seed = 1, .step = step, .layer = stream_layer("gradient")});
    for (std::size_t i = 0; i < floats; ++i) g[i] = 2 * random.uniform(i) - 1;
  }
};

std::unique_ptr<const Rule> rule(const std::string& name) {
  Options options;
  options.items["weight_decay"].value = 0.01;
  Problems problems;
  OptionReader reader(options, problems);
  return make_rule(name, reader);
}

struct Result {
  std::vector<float> w;
  std::vector<std::vector<float>> slots;
  bool operator==(const Result&) const = default;
};

Result train(const std::string& name, Clip clip, std::size_t parts, bool backwards = false) {
  Model model;
  model.start();
  Update update(rule(name), clip, segments(), model.w, model.g);
  for (std::uint32_t step = 1; step <= 3; ++step) {
    model.gradient(step);
    update.begin({.number = step, .lr = 0.05, .grad_scale = 0.125});
    for (int phase = 0; phase < update.phases(); ++phase) {
      for (std::size_t k = 0; k < parts; ++k) update.run(phase, update.part(backwards ? parts - 1 - k : k, parts));
      update.fold(phase);
    }
  }
  Result result{model.w, {}};
  for (const auto& slot : update.slots()) result.slots.emplace_back(slot.values.begin(), slot.values.end());
  return result;
}

TEST(Update, GivesTheSameBitsHoweverTheWorkIsSplit) {
  for (const std::string& name : rule_names())
    for (const Clip clip : {Clip{}, Clip{.value = 0.1}, Clip{.norm = 2}, Clip{.value = 0.1, .norm = 2}}) {
      const Result alone = train(name, clip, 1);
      for (const std::size_t parts : {2, 3, 7, 64}) {
        EXPECT_TRUE(alone == train(name, clip, parts)) << name << " in " << parts;
        EXPECT_TRUE(alone == train(name, clip, parts, true)) << name << " in " << parts << ", last first";
      }
    }
}

TEST(Update, PartsCoverEveryBlockOnceAndShareTheElements) {
  Model model;
  Update update(rule("sgd"), {}, segments(), model.w, model.g);
  for (const std::size_t cores : {1, 2, 3, 5, 100}) {
    std::size_t next = 0;
    for (std::size_t core = 0; core < cores; ++core) {
      const auto [first, last] = update.part(core, cores);
      EXPECT_EQ(first, next);
      next = last;
      std::size_t elements = 0;
      for (std::size_t i = first; i < last; ++i) elements += update.blocks()[i].size;
      EXPECT_LE(elements, floats / cores + Update::block_size);
    }
    EXPECT_EQ(next, update.blocks().size());
  }
}

TEST(Update, TouchesNothingOutsideTheSegments) {
  Model model;
  model.start();
  const std::vector<float> before = model.w;
  model.gradient(1);
  Update update(rule("adamw"), {.norm = 1}, segments(), model.w, model.g);
  update.run_alone({.lr = 0.1});
  std::size_t end = 0;
  for (const TrainedSpan& s : segments()) {
    for (std::size_t i = end; i < s.offset; ++i) EXPECT_EQ(model.w[i], before[i]) << i;
    for (std::size_t i = s.offset; i < s.offset + s.size; ++i) EXPECT_NE(model.w[i], before[i]) << i;
    end = s.offset + s.size;
  }
}

TEST(Update, StatisticsMoveTowardsTheMeanContributionAndAreNeverClipped) {
  Model model;
  model.start();
  const std::vector<float> before = model.w;
  model.gradient(1);
  const std::vector<float> contributed = model.g;
  Update update(rule("sgd"), {.value = 1e-3, .norm = 1e-3}, segments(), model.w, model.g);
  update.run_alone({.lr = 0.1, .grad_scale = 0.5});
  for (std::size_t i = 5024; i < 5088; ++i)
    EXPECT_FLOAT_EQ(model.w[i], before[i] + 0.25f * (0.5f * contributed[i] - before[i]));
}

TEST(Update, NormClippingBoundsTheWholeStepAndLeavesSmallGradientsAlone) {
  const auto step_norm = [](double limit, double grad_scale) {
    Model model;
    model.start();
    const std::vector<float> before = model.w;
    model.gradient(1);
    Options none;
    Problems problems;
    OptionReader reader(none, problems);
    Update update(make_rule("sgd", reader), {.norm = limit}, segments(), model.w, model.g);
    update.run_alone({.lr = 1, .grad_scale = grad_scale});
    double sum = 0, expected = 0;
    model.gradient(1);
    for (const TrainedSpan& s : segments())
      for (std::size_t i = s.offset; !s.statistic && i < s.offset + s.size; ++i) {
        sum += std::pow(model.w[i] - before[i], 2.0);
        expected += std::pow(grad_scale * model.g[i], 2.0);
      }
    EXPECT_NEAR(update.gradient_norm(), std::sqrt(expected), 1e-4 * std::sqrt(expected));
    return std::sqrt(sum);
  };
  EXPECT_NEAR(step_norm(3, 1), 3, 1e-3);
  EXPECT_NEAR(step_norm(3, 0.25), 3, 1e-3);
  EXPECT_NEAR(step_norm(1e6, 0.25), 0.25 * std::sqrt(22108 / 3.0), 0.3);
}

TEST(Update, WeightDecayAndTrustSpareBiases) {
  for (const char* name : {"adamw", "lars", "lamb", "sgd"}) {
    std::vector<float> w = {1, 2, 3, 4}, g(4, 0.f);
    Update update(rule(name), {}, {{0, 2}, {2, 2, 1, false}}, w, g);
    update.run_alone({.lr = 0.5});
    EXPECT_LT(w[0], 1) << name;  // decays although its gradient is zero
    EXPECT_EQ(w[2], 3) << name;
    EXPECT_EQ(w[3], 4) << name;
  }
}

TEST(Update, CoresMayWorkAtTheSameTime) {
  const Result alone = train("lamb", {.norm = 2}, 1);
  Model model;
  model.start();
  Update update(rule("lamb"), {.norm = 2}, segments(), model.w, model.g);
  for (std::uint32_t step = 1; step <= 3; ++step) {
    model.gradient(step);
    update.begin({.number = step, .lr = 0.05, .grad_scale = 0.125});
    for (int phase = 0; phase < update.phases(); ++phase) {
      {
        std::vector<std::jthread> cores;
        for (std::size_t k = 0; k < 3; ++k) cores.emplace_back([&, k] { update.run(phase, update.part(k, 3)); });
      }
      update.fold(phase);
    }
  }
  EXPECT_EQ(alone.w, model.w);
}

}  // namespace
}  // namespace echelon
