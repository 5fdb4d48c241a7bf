// Epochs that end when a share of their samples is done (sync.epoch_share): the run goes on with the next one, and does
// not wait for what a slow worker has left.

#include <gtest/gtest.h>

#include "recipe/prepare.h"
#include "run/job.h"
#include "tests/support/temp_dir.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

constexpr int share_workers = 4, samples = 480, batch = 16, steps = samples / batch;

struct EpochOutcome : RunListener {
  void on_step(const StepEvent& e) override {
    EXPECT_GT(e.result.samples, 0) << "a loss of nothing, at step " << e.step;
    done += e.result.samples;
  }
  void on_evaluation(const EvaluationEvent& e) override { evaluated.push_back(e.step); }
  std::int64_t done = 0;                // samples
  std::vector<std::int64_t> evaluated;  // after these steps
  RunSummary summary;
  double seconds = 0;
};

EpochOutcome train(double share, double slowness, int epochs, const std::string& every = "eval_every_epochs = 1") {
  const auto disk = make_real_disk();
  const test::TempDir dir;
  const std::string recipe = dir.path("recipe.toml");
  write_file_atomically(
      *disk, recipe,
      fmt::format("[model]\nname = 'mlp'\nhidden = [12]\n[data]\nkind = 'synthetic'\nmake = 'blobs'\nshape = [16]\n"
                  "samples = {}\nsamples_test = 20\nclasses = 4\n[optim]\nname = 'sgd'\nlr = 0.02\n[train]\n"
                  "epochs = {}\nbatch = {}\n{}\n[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n[sync]\n"
                  "name = 'async'\nwork = 'own'\nepoch_share = {}\n",
                  samples, epochs, batch, every, share));
  Problems problems;
  const PreparedRun prepared = prepare_run(*disk, recipe, {}, problems);
  problems.throw_if_any(recipe);
  TrainingJob job = make_job(prepared);
  job.stragglers = {{.rank = 1, .factor = slowness}};
  EpochOutcome outcome;
  run_in_simulation(SimCluster::uniform(share_workers, 1e-5, 1e9, 1e6), {}, [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    Training training(job, *disk, world.clock(), team, "", 1);
    if (world.rank() == 0) training.add(outcome);
    const Training::StopFlag never{false};
    const RunSummary summary = training.run(never);
    if (world.rank() == 0) outcome.summary = summary, outcome.seconds = world.now();
  }).throw_if_failed();
  return outcome;
}

TEST(EpochShare, EndsEpochsWithoutWaitingForASlowWorker) {
  constexpr int epochs = 3;
  const EpochOutcome whole = train(1, 20, epochs), cut = train(0.75, 20, epochs), equal = train(1, 1, epochs);
  EXPECT_EQ(whole.done, epochs * samples);
  EXPECT_GE(cut.done, epochs * samples * 3 / 4);
  EXPECT_LT(cut.done, epochs * samples * 7 / 8);
  EXPECT_EQ(cut.summary.steps, epochs * steps);
  EXPECT_EQ(cut.summary.stopped_by, "end");
  EXPECT_EQ(cut.evaluated, whole.evaluated);
  EXPECT_EQ(cut.evaluated, (std::vector<std::int64_t>{steps, 2 * steps, 3 * steps}));
  EXPECT_GT(whole.seconds, 10 * equal.seconds) << "a straggler that would show";
  EXPECT_LT(cut.seconds, whole.seconds / 4);
}

// An evaluation after four fifths of an epoch, which is over by then: nothing of the last fifth is done.
TEST(EpochShare, CountsFromTheBeginningOfAnEpochEvenIfRanksMeetWithinIt) {
  const EpochOutcome o = train(0.75, 1, 1, fmt::format("eval_every_steps = {}", steps * 4 / 5));
  EXPECT_GE(o.done, samples * 3 / 4);
  EXPECT_LE(o.done, samples * 4 / 5);
  EXPECT_EQ(o.evaluated, (std::vector<std::int64_t>{steps * 4 / 5, steps}));
  EXPECT_EQ(o.summary.steps, steps);
}

}  // namespace
}  // namespace echelon
