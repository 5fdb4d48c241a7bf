#pragma once
// A small perceptron on the repository's digits, trained by a shipped system: how good it gets.

#include <string>
#include <vector>

#include "recipe/prepare.h"
#include "run/job.h"
#include "tests/run/shipped.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon::test {

struct DigitsRun {
  std::string hidden = "[64]";
  std::vector<std::string> overrides = {};
  Byzantine byzantine = {};
};

// The accuracy on the test digits. Simulated workers, unless they must share memory.
inline double accuracy_on_digits(const std::string& system, int ranks, const DigitsRun& run = {}) {
  const auto disk = make_real_disk();
  const TempDir dir;
  const std::string recipe = dir.path("recipe.toml");
  write_file_atomically(
      *disk, recipe,
      "[model]\nname = 'mlp'\nhidden = " + run.hidden +
          "\n[data]\nkind = 'digits'\ntransform = "
          "[{ kind = 'normalise', mean = 0.1307, std = 0.3081 }]\n[optim]\nname = 'momentum'\nlr = 0.02\n"
          "[schedule]\nname = 'cosine'\nwarmup_epochs = 1\n[train]\nepochs = 6\nbatch = 64\n");
  Problems problems;
  const PreparedRun prepared =
      prepare_run(*disk, recipe, run.overrides, problems, {.root = "nowhere", .share = {source_path("share")}}, system);
  problems.throw_if_any(recipe);
  TrainingJob job = make_job(prepared);
  job.byzantine = run.byzantine;
  const bool in_one_memory = job.composition && job.composition->exchange->traits().shared_memory;
  check_system(job, ranks, in_one_memory, recipe);
  double accuracy = 0;
  const auto program = [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, job.composition != nullptr);
    Training training(job, *disk, world.clock(), team, "", 1);
    const RunSummary summary = training.run(false);
    if (world.rank() == 0) accuracy = summary.test->accuracy;
  };
  if (in_one_memory)
    run_in_threads(ranks, {}, program);
  else
    run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {}, program).throw_if_failed();
  return accuracy;
}

}  // namespace echelon::test
