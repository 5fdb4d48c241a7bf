#include "parallel/engine.h"

#include <gtest/gtest.h>

#include "data/formats/synthetic.h"
#include "models/zoo.h"
#include "tests/parallel/small_networks.h"
#include "world/launch.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

using namespace test;

struct Told {
  std::vector<std::int64_t> steps;
  Reached reached;
  double bytes = 0;
};

// Exact training of ten steps on each rank; the last rank asks to stop when `stop_at` steps are done.
std::vector<Told> run_exact(int ranks, std::int64_t stop_at, bool counts) {
  const auto data = data::make_synthetic("train", cases()[0].data);
  const auto model = models::make_model(cases()[0].name, inputs_of(*data), cases()[0].options);
  std::vector<Told> told(static_cast<std::size_t>(ranks));
  run_in_threads(ranks, {}, [&](World& world) {
    const auto meter = counts ? make_metered(world) : nullptr;
    Cores cores(1);
    Team team(meter ? *meter : world, cores, true);
    const auto engine = make_engine({.model = model.get(),
                                     .make_optim = [] { return optim("momentum"); },
                                     .fields = data->fields(),
                                     .shards = 4,
                                     .seed = 3},
                                    16, nullptr, team);
    data::LoaderOptions options{.batches = {{0, 16}}, .drop_partial = true, .prefetch = 0};
    engine->adapt(options);
    data::Loader loader(data, options);
    Told& mine = told[static_cast<std::size_t>(world.rank())];
    const bool last = world.rank() + 1 == ranks;
    mine.reached = engine->run({.from = 0,
                                .to = 10,
                                .loader = &loader,
                                .lr = [](std::int64_t) { return 0.01; },
                                .epoch = [](std::int64_t) { return 0.0; },
                                .asks_to_stop = [&] { return last && std::ssize(mine.steps) >= stop_at; },
                                .on_progress = [&](const StepProgress& p) { mine.steps.push_back(p.step); }});
    mine.bytes = engine->bytes_sent();
    engine->close();
  });
  return told;
}

TEST(ExactEngine, RunsUntilTheStepAndReportsEveryOne) {
  for (const Told& rank : run_exact(2, 100, true)) {
    EXPECT_EQ(rank.reached.step, 10);
    EXPECT_FALSE(rank.reached.stop);
    EXPECT_EQ(rank.steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  }
}

TEST(ExactEngine, AllRanksStopAfterTheSameStepIfOneAsks) {
  for (const Told& rank : run_exact(3, 4, true)) {
    EXPECT_TRUE(rank.reached.stop);
    EXPECT_EQ(rank.reached.step, 5);  // the request travels with the losses of the fifth
    EXPECT_EQ(rank.steps.size(), 5u);
  }
  EXPECT_EQ(run_exact(1, 4, true)[0].reached.step, 4);  // alone it need not travel
}

TEST(ExactEngine, KnowsWhatAllRanksHaveSentIfTheWorldCountsIt) {
  const auto counted = run_exact(2, 100, true);
  EXPECT_GT(counted[0].bytes, 0);
  EXPECT_EQ(counted[0].bytes, counted[1].bytes);
  EXPECT_EQ(run_exact(2, 100, false)[0].bytes, -1);
  EXPECT_EQ(run_exact(1, 100, false)[0].bytes, 0);
}

}  // namespace
}  // namespace echelon
