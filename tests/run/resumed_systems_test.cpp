// Every shipped system, saved and loaded: what was saved is the model again, and where ranks are in lock-step the run
// goes on as if nothing had happened. Servers' optimizers, codecs' residuals, centres and tokens are part of it.

#include <gtest/gtest.h>

#include <cstring>

#include "recipe/system_file.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

const SystemPlaces places{ECHELON_SOURCE_DIR "/recipes/systems"};
constexpr int workers = 3;
constexpr std::int64_t half = 24;  // steps: a period of most systems

struct Saved {
  std::vector<std::vector<std::byte>> state;  // by rank's blob, on rank 0
  std::vector<float> model;
};

struct Outcome {  // by rank
  std::vector<std::vector<float>> weights, models;
};

class ResumedSystem : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const SystemFile file = read_system(*make_real_disk(), GetParam(), places);
    for (const auto& [axis, table] : axes(file)) tables_ += fmt::format("[{}]\n{}", axis, write_toml(*table));
    Problems problems;
    composition_ = std::make_unique<Composition>(composition_of(tables_, problems));
    check_composition(*composition_, {.workers = workers}, problems);
    if (!problems.empty()) GTEST_SKIP() << problems.text(file.path);  // System.ComposesWithoutProblems fails then
  }

  // Steps from `from` to `to` in rounds of `half`, on what was saved before (if anything); saves at the end.
  Outcome run(std::int64_t from, std::int64_t to, Saved* before, Saved* after) {
    Outcome out{std::vector<std::vector<float>>(workers), std::vector<std::vector<float>>(workers)};
    const auto program = [&](World& world) {
      const auto data = data::make_synthetic("train", job_.network.data);
      const auto model = models::make_model(job_.network.name, inputs_of(*data), job_.network.options);
      const auto meter = make_metered(world);
      Cores cores(1);
      Crew crew(*meter, cores, true);
      Replica replica({.model = model.get(),
                       .make_optim = [] { return optim("momentum"); },
                       .fields = data->fields(),
                       .shards = 1,
                       .seed = 3,
                       .largest_slice = job_.batch},
                      *composition_, *meter, crew);
      if (before) load(world, replica, *before);
      data::Loader loader(data, {.seed = 3,
                                 .batches = {{0, static_cast<std::uint64_t>(job_.batch)}},
                                 .parts = workers,
                                 .part = static_cast<std::uint64_t>(world.rank()),
                                 .prefetch = 0});
      for (std::int64_t step = from; step < to; step += half)
        replica.run({.from = step,
                     .to = step + half,
                     .loader = &loader,
                     .lr = [](std::int64_t) { return 0.02; },
                     .epoch = [](std::int64_t s) { return static_cast<double>(s) / 8; },
                     .wants_to_stop = [] { return false; },
                     .on_progress = [](std::int64_t, const StepResult&, double) {}});
      replica.read_model();
      const auto r = static_cast<std::size_t>(world.rank());
      out.models[r].assign(replica.model().begin(), replica.model().end());
      out.weights[r].assign(replica.trainer().parameters().begin(), replica.trainer().parameters().end());
      if (after) save(world, replica, *after);
      replica.close();
    };
    if (composition_->exchange->traits().shared_memory)
      run_in_threads(workers, {}, program);
    else
      run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9), {.seed = 7}, program).throw_if_failed();
    return out;
  }

  std::unique_ptr<Composition> composition_;

 private:
  static void save(World& world, Replica& replica, Saved& saved) {
    replica.gather();
    if (world.rank() != 0) return;
    for (const Trainer::State& s : replica.state()) saved.state.emplace_back(s.bytes.begin(), s.bytes.end());
    saved.model.assign(replica.model().begin(), replica.model().end());
  }

  static void load(World& world, Replica& replica, const Saved& saved) {
    if (world.rank() == 0) {
      const auto state = replica.state();
      ASSERT_EQ(state.size(), saved.state.size());
      for (std::size_t i = 0; i < state.size(); ++i) {
        ASSERT_EQ(state[i].bytes.size(), saved.state[i].size());
        std::memcpy(state[i].bytes.data(), saved.state[i].data(), state[i].bytes.size());
      }
    }
    replica.scatter();
    EXPECT_TRUE(same_bits({replica.model().begin(), replica.model().end()}, saved.model)) << "another model was loaded";
  }

  SystemJob job_;
  std::string tables_;
};

TEST_P(ResumedSystem, GoesOnFromWhereItWas) {
  Saved saved;
  run(0, half, nullptr, &saved);
  const Outcome resumed = run(half, 2 * half, &saved, nullptr);
  if (composition_->uses_letters()) return;  // who comes when depends on the time
  const Outcome whole = run(0, 2 * half, nullptr, nullptr);
  for (std::size_t r = 0; r < workers; ++r) {
    EXPECT_TRUE(same_bits(resumed.weights[r], whole.weights[r])) << "rank " << r << " trains differently";
    EXPECT_TRUE(same_bits(resumed.models[r], whole.models[r]));
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, ResumedSystem, testing::ValuesIn(system_names(*make_real_disk(), places)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
