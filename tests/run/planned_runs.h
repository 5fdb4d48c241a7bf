#pragma once
// Runs of split models from their first step to their last, for tests.

#include <gtest/gtest.h>

#include "recipe/prepare.h"
#include "run/job.h"
#include "run/run_plan.h"
#include "run/training/training.h"
#include "tests/support/temp_dir.h"
#include "world/launch.h"

namespace echelon::test {

// Trains until `until` (the recipe's end if it comes first) on as many threads as the plan wants, from the last
// checkpoint in the folder. Returns the hash of the weights on rank 0.
inline std::string go_on(const PreparedRun& prepared, const std::string& folder, const std::string& plan_text,
                         int workers, std::int64_t until) {
  std::string hash;
  run_in_threads(workers, {.seed = 1}, [&](World& world) {
    const auto disk = make_real_disk();
    TrainingJob job = make_job(prepared);
    Problems problems;
    job.plan =
        check_run_plan(prepared, read_run_plan(*disk, prepared.recipe, plan_text, problems), workers, 0, problems);
    problems.throw_if_any(prepared.recipe.path);
    Cores cores(1);
    Team team(world, cores, job.plan.splits_model());
    Training training(job, *disk, world.clock(), team, folder, 2);
    training.resume();
    struct StopAt : RunListener {
      explicit StopAt(std::int64_t at) : at(at) {}
      void on_step(const StepEvent& e) override {
        if (e.step >= at) flag = true;
      }
      std::int64_t at;
      Training::StopFlag flag{false};
    } stop(until);
    training.add(stop);
    const RunSummary summary = training.run(stop.flag);
    if (world.rank() == 0) hash = summary.weights_sha256;
  });
  return hash;
}

inline PreparedRun prepare_in(const TempDir& dir, const std::string& model, const std::string& data, int shards = 4) {
  const auto disk = make_real_disk();
  const Stream characters({.seed = 3});
  std::string written;
  for (std::uint64_t i = 0; i < 2500; ++i) written += static_cast<char>('a' + characters.below(9, i));
  write_file_atomically(*disk, dir.path("text.txt"), written);
  write_file_atomically(
      *disk, dir.path("recipe.toml"),
      fmt::format("[model]\n{}[data]\n{}[optim]\nname = \"adam\"\nclip_norm = 0.3\n[train]\nepochs = 2\n"
                  "batch = {}\nshards = {}\n",
                  model, data, 5 * shards, shards));
  Problems problems;
  static const auto kept = make_real_disk();  // which the data set reads from
  PreparedRun prepared = prepare_run(*kept, dir.path("recipe.toml"), {}, problems);
  problems.throw_if_any(dir.path("recipe.toml"));
  return prepared;
}

}  // namespace echelon::test
