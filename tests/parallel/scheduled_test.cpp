// Updates of chosen blocks (STRADS): only these move, neighbouring layers never together, what changes much more often
// than what does not.

#include <gtest/gtest.h>

#include <set>

#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;

SystemJob scheduled_job(const std::string& settings, int steps) {
  SystemJob job{.system = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'scheduled'\n" + settings};
  job.network.options = table({{"hidden", integers({12, 10})}});
  job.steps = steps;
  return job;
}

// Which layers' weights differ, and how many numbers.
struct Moved {
  std::set<std::string> layers;
  std::size_t numbers = 0;
};

Moved moved_between(const SystemJob& job, const std::vector<float>& before, const std::vector<float>& after) {
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = models::make_model(job.network.name, inputs_of(*data), job.network.options);
  ParameterTable table;
  for (const auto& phase : model->training(1)) table.include(phase.graph);
  Moved moved;
  for (const auto& e : table.entries())
    for (std::size_t i = e.offset; i < e.offset + e.size; ++i)
      if (before[i] != after[i]) {
        moved.layers.insert(e.parameter.name.substr(0, e.parameter.name.rfind('.')));
        ++moved.numbers;
      }
  return moved;
}

TEST(Scheduled, OnlyChosenBlocksMoveAndNeighboursNeverTogether) {
  std::size_t with_two = 0;
  std::vector<float> before = simulate_system(3, scheduled_job("blocks = 3\nblock = 16\n", 0))[0].model;
  for (int step = 1; step <= 12; ++step) {
    const SystemJob job = scheduled_job("blocks = 3\nblock = 16\n", step);
    const std::vector<float> after = simulate_system(3, job)[0].model;
    const Moved moved = moved_between(job, before, after);
    EXPECT_GT(moved.numbers, 0u);
    EXPECT_LE(moved.numbers, 48u);
    EXPECT_LE(moved.layers.size(), 2u);  // of three in a row: the first and the last at most
    with_two += moved.layers.size() == 2;
    before = after;
  }
  EXPECT_GT(with_two, 0u);
  // Without the check all three move at once.
  const SystemJob all = scheduled_job("blocks = 40\nblock = 16\ndependencies = false\n", 1);
  EXPECT_EQ(moved_between(all, simulate_system(3, scheduled_job("", 0))[0].model, simulate_system(3, all)[0].model)
                .layers.size(),
            3u);
}

TEST(Scheduled, WithAllBlocksItIsASynchronousStep) {
  SystemJob owners = scheduled_job("", 8);
  owners.system = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'owner_shard'\n";
  const auto all = simulate_system(4, scheduled_job("blocks = 40\nblock = 16\ndependencies = false\n", 8));
  EXPECT_TRUE(same_bits(all[0].model, simulate_system(4, owners)[0].model));
  for (const SystemResult& r : all) EXPECT_TRUE(same_bits(r.model, all[0].model));
}

TEST(Scheduled, WhatChangesMuchIsChosenMoreOften) {
  const auto spread = [](const char* floor) {
    auto figures =
        simulate_system(
            2, scheduled_job(fmt::format("blocks = 4\nblock = 16\ndependencies = false\nfloor = {}\n", floor), 100))[0]
            .figures;
    EXPECT_GT(figures["least_drawn"], 0) << "nothing is left out for ever";
    return figures["most_drawn"] / figures["least_drawn"];
  };
  const double by_change = spread("0.01"), alike = spread("1000");
  EXPECT_GT(by_change, 1.5 * alike);
}

TEST(Scheduled, RulesWithStepsOfTheirOwnAreRefused) {
  Problems problems;
  check_composition(composition_of("[rule]\nname = 'param_mean'\n[exchange]\nname = 'scheduled'\n", problems),
                    {.workers = 4}, problems);
  EXPECT_NE(problems.text("system").find("take rule grad_push"), std::string::npos);
}

}  // namespace
}  // namespace echelon
