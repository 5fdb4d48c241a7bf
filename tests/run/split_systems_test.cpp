// A system around a plan, from a recipe's file to its checkpoints: replicas that are split go on where they were, and
// only as they were split.

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/run/planned_runs.h"
#include "tests/support/source_path.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

PreparedRun prepare_system(const test::TempDir& dir, const std::string& system) {
  write_file_atomically(
      *make_real_disk(), dir.path("recipe.toml"),
      "[model]\nname = \"mlp\"\nhidden = [18, 10]\nslices = 2\n[data]\nkind = \"synthetic\"\nmake = "
      "\"blobs\"\nshape = [12]\nsamples = 60\nsamples_test = 20\nclasses = 4\n[optim]\nname = \"momentum\"\n"
      "lr = 0.02\n[train]\nepochs = 2\nbatch = 12\nshards = 4\ncheckpoint_every_steps = 4\n" +
          system);
  Problems problems;
  static const auto kept = make_real_disk();
  PreparedRun prepared = prepare_run(*kept, dir.path("recipe.toml"), {}, problems);
  problems.throw_if_any(dir.path("recipe.toml"));
  return prepared;
}

// Trains until `until` from the last checkpoint in the folder; the hash of the weights on rank 0.
std::string go_on_with_system(const PreparedRun& prepared, const std::string& folder, const std::string& plan,
                              std::int64_t until) {
  std::string hash;
  run_in_threads(4, {.seed = 1}, [&](World& world) {
    const auto disk = make_real_disk();
    const auto meter = make_metered(world);
    TrainingJob job = make_job(prepared);
    Problems problems;
    job.plan = check_run_plan(prepared, read_run_plan(*disk, prepared.recipe, plan, problems), 4, 0, problems);
    problems.throw_if_any(prepared.recipe.path);
    check_system(job, 4, true, prepared.recipe.path);
    job.total_steps = until;
    Cores cores(1);
    Team team(*meter, cores, true);
    Training training(job, *disk, world.clock(), team, folder, 2);
    training.resume();
    const Training::StopFlag never{false};
    const RunSummary summary = training.run(never);
    if (world.rank() == 0) hash = summary.weights_sha256;
  });
  return hash;
}

constexpr const char* averaging = "[rule]\nname = \"param_mean\"\n[exchange]\nname = \"all_reduce\"\n[when]\ntau = 2\n";

TEST(SplitSystems, ACheckpointGoesOnWithTheSamePlanOnly) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_system(dir, averaging);
  for (const char* plan : {"pipeline=2", "tensor=2"}) {
    const std::string straight = go_on_with_system(prepared, dir.path(std::string("straight ") + plan), plan, 8);
    const std::string folder = dir.path(std::string("in two ") + plan);
    EXPECT_NE(go_on_with_system(prepared, folder, plan, 4), straight);
    try {
      go_on_with_system(prepared, folder, plan == std::string("tensor=2") ? "pipeline=2" : "tensor=2", 8);
      ADD_FAILURE() << "another plan went on from it";
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find("plan: the checkpoint has data=2," + std::string(plan)), std::string::npos)
          << e.what();
    }
    EXPECT_EQ(go_on_with_system(prepared, folder, plan, 8), straight);
  }
}

}  // namespace
}  // namespace echelon
