// Training, validation and test part of a run: what is looked at when, and which weights are the best.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "parallel/step/evaluator.h"
#include "run/job.h"
#include "run/training/training.h"
#include "run/weights.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/checkpoint.h"
#include "world/launch.h"

namespace echelon {
namespace {

struct PartsRecipe {
  std::string data = "validation = 0.2\n", train = "", more = "";
  int epochs = 6;
};

// A recipe on made-up samples that are hard to tell apart, so that evaluations go up and down.
class PartsRun {
 public:
  explicit PartsRun(const test::TempDir& dir, const PartsRecipe& r = {}) : disk_(make_real_disk()) {
    const std::string path = dir.path("recipe.toml");
    write_file_atomically(
        *disk_, path,
        fmt::format("[model]\nname = \"mlp\"\nhidden = [12]\n[data]\nkind = \"synthetic\"\nmake = \"blobs\"\nshape = "
                    "[6]\nsamples = 150\nsamples_test = 40\nclasses = 4\nnoise = 1.5\n{}[optim]\nname = \"adam\"\nlr = "
                    "0.05\n[train]\nepochs = {}\nbatch = 20\n{}{}",
                    r.data, r.epochs, r.train, r.more));
    Problems problems;
    prepared_ = prepare_run(*disk_, path, {}, problems);
    problems.throw_if_any(path);
    job_ = std::make_unique<TrainingJob>(make_job(prepared_));
  }
  const TrainingJob& job() const { return *job_; }
  const PreparedRun& prepared() const { return prepared_; }

 private:
  std::unique_ptr<Disk> disk_;
  PreparedRun prepared_;
  std::unique_ptr<TrainingJob> job_;
};

struct Seen : RunListener {
  std::vector<EvaluationEvent> evaluations;
  void on_evaluation(const EvaluationEvent& e) override { evaluations.push_back(e); }
};

struct Ran {
  RunSummary summary;
  std::vector<EvaluationEvent> evaluations;
  std::vector<float> tested;
};

Ran run_it(const TrainingJob& job, const std::string& checkpoints, bool resumes = false) {
  LocalTeam alone(1);
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  Training training(job, *disk, *clock, alone.team, checkpoints, 100);
  Seen seen;
  training.add(seen);
  if (resumes) {
    EXPECT_TRUE(training.resume());
  }
  const Training::StopFlag never{false};
  Ran ran{training.run(never), seen.evaluations, {}};
  ran.tested.assign(training.tested_weights().begin(), training.tested_weights().end());
  return ran;
}

TEST(Parts, ValidationIsLookedAtWhileItTrainsAndTheTestOnceAtTheEnd) {
  const test::TempDir dir;
  const PartsRun run(dir);
  const Ran ran = run_it(run.job(), dir.path("c"));
  ASSERT_EQ(ran.evaluations.size(), 7u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ran.evaluations[i].part, "val");
    EXPECT_EQ(ran.evaluations[i].result.samples, 30);
  }
  EXPECT_EQ(ran.evaluations[6].part, "test");
  EXPECT_EQ(ran.evaluations[6].result.samples, 40);
  EXPECT_EQ(ran.evaluations[6].tested_step, ran.summary.best_step);
  EXPECT_EQ(ran.summary.monitor, "val_accuracy");
  EXPECT_EQ(ran.summary.validation->loss, ran.evaluations[5].result.loss);
  EXPECT_EQ(ran.summary.test->loss, ran.evaluations[6].result.loss);
}

TEST(Parts, TheTestIsOfTheWeightsThatWereBestOnTheValidationPart) {
  const test::TempDir dir;
  const PartsRun run(dir,
                     {.data = "validation = 0.2\n", .train = "monitor = \"val_loss\"\n", .more = "", .epochs = 12});
  const Ran ran = run_it(run.job(), dir.path("c"));
  ASSERT_LT(ran.summary.best_step, ran.summary.steps) << "the last step is the best: that tests nothing";
  EXPECT_EQ(ran.summary.tested_step, ran.summary.best_step);
  auto disk = make_real_disk();
  CheckpointSearch best = best_valid(*disk, dir.path("c"));
  ASSERT_TRUE(best.found);
  EXPECT_EQ(best.found->manifest.position.step, ran.summary.best_step);
  ParameterTable table;
  table.include(run.job().model->training(1)[0].graph);
  std::vector<float> weights(table.floats());
  load_weights(best.found->weights, table, weights);
  EXPECT_TRUE(weights == ran.tested);
  LocalTeam alone(2);
  Evaluator evaluator(*run.job().model, table, weights, run.job().test, 40, alone.team);
  EXPECT_EQ(evaluator.run().loss, ran.summary.test->loss);
}

// The step that the rule names: the best metric, of equals the lowest loss, then the earliest.
std::int64_t best_by_rule(const std::vector<EvaluationEvent>& evaluations, const std::string& metric, bool higher) {
  std::int64_t step = 0;
  double best = 0, loss = 0;
  for (const EvaluationEvent& e : evaluations) {
    if (e.tested_step >= 0) continue;
    double value = e.result.loss;
    for (const auto& [name, v] : e.result.metrics)
      if (name == metric) value = v;
    if (!higher) value = -value;
    if (step == 0 || value > best || (value == best && e.result.loss < loss))
      step = e.step, best = value, loss = e.result.loss;
  }
  return step;
}

TEST(Parts, TheMonitoredMetricDecidesAndTheLossBreaksTies) {
  for (const auto& [monitor, metric, higher] :
       {std::tuple("", "accuracy", true), std::tuple("monitor = \"val_f1\"\n", "f1", true),
        std::tuple("monitor = \"val_loss\"\n", "", false),
        std::tuple("monitor = \"val_log_loss\"\n", "log_loss", false),
        std::tuple("monitor = \"auc\"\n", "auc", true)}) {
    const test::TempDir dir;
    const PartsRun run(dir, {.data = "validation = 0.2\n", .train = monitor, .more = "", .epochs = 10});
    const Ran ran = run_it(run.job(), dir.path("c"));
    EXPECT_EQ(ran.summary.best_step, best_by_rule(ran.evaluations, metric, higher)) << monitor;
    auto disk = make_real_disk();
    EXPECT_EQ(best_valid(*disk, dir.path("c")).found->manifest.position.step, ran.summary.best_step) << monitor;
  }
}

TEST(Parts, WithoutAValidationPartTheTestPartTakesItsPlace) {
  const test::TempDir dir;
  const PartsRun run(dir, {.data = ""});
  const Ran ran = run_it(run.job(), dir.path("c"));
  ASSERT_EQ(ran.evaluations.size(), 6u);
  for (const EvaluationEvent& e : ran.evaluations) EXPECT_EQ(e.part, "test");
  EXPECT_EQ(ran.summary.monitor, "test_accuracy");
  EXPECT_EQ(ran.summary.test->loss, ran.evaluations.back().result.loss);
  EXPECT_EQ(ran.summary.tested_step, ran.summary.steps);
  EXPECT_FALSE(ran.summary.validation);
}

TEST(Parts, OnlyMeasuredWeightsHaveAScore) {
  const test::TempDir dir;
  const PartsRun run(dir,
                     {.data = "validation = 0.2\n", .train = "checkpoint_every_steps = 1\neval_every_steps = 4\n"});
  run_it(run.job(), dir.path("c"));
  auto disk = make_real_disk();
  int scored = 0;
  for (const CheckpointEntry& e : list_checkpoints(*disk, dir.path("c"))) {
    const bool has = open_checkpoint(*disk, e.path).manifest.position.score.has_value();
    scored += has;
    if (e.step % 4 != 0 && e.step != run.job().total_steps) {
      EXPECT_FALSE(has) << e.step;
    }
  }
  EXPECT_GT(scored, 0);
}

TEST(Parts, TheBestIsSavedAlsoBetweenCheckpoints) {
  const test::TempDir dir;
  const PartsRun run(dir,
                     {.data = "validation = 0.2\n", .train = "checkpoint_every_epochs = 5\neval_every_steps = 3\n"});
  const Ran ran = run_it(run.job(), dir.path("c"));
  auto disk = make_real_disk();
  EXPECT_EQ(best_valid(*disk, dir.path("c")).found->manifest.position.step, ran.summary.best_step);
}

TEST(Parts, AFinishedRunIsNotTestedAgain) {
  const test::TempDir dir;
  const PartsRun run(dir,
                     {.data = "validation = 0.2\n", .train = "monitor = \"val_loss\"\n", .more = "", .epochs = 12});
  const Ran first = run_it(run.job(), dir.path("c")), second = run_it(run.job(), dir.path("c"), true);
  for (const EvaluationEvent& e : second.evaluations) EXPECT_NE(e.part, "test");
  EXPECT_EQ(second.summary.test->loss, first.summary.test->loss);
  EXPECT_EQ(second.summary.test->metrics, first.summary.test->metrics);
  EXPECT_EQ(second.summary.tested_step, first.summary.tested_step);
  EXPECT_TRUE(second.tested == first.tested);
}

TEST(Parts, AreTheSameDigitsForAnyNumberOfWorkers) {
  const test::TempDir dir;
  const PartsRun run(dir, {.data = "validation = 0.2\n",
                           .train = "monitor = \"val_f1\"\n",
                           .more = "[metrics]\nreport = [\"accuracy\", \"top_2\", \"f1_micro\", \"recall\", \"auc\", "
                                   "\"log_loss\"]\n[loss]\nclass_weights = \"balanced\"\n",
                           .epochs = 8});
  const Ran alone = run_it(run.job(), dir.path("c"));
  ASSERT_EQ(alone.summary.test->metrics.size(), 7u);
  for (const int workers : {2, 3, 5})
    for (const bool apart : {false, true}) {
      std::vector<RunSummary> all(static_cast<std::size_t>(workers));
      const std::string folder = dir.path(fmt::format("c{}{}", workers, apart));
      run_in_threads(workers, {}, [&](World& world) {
        Cores cores(1);
        Team team(world, cores, apart);
        const auto disk = make_real_disk();
        Training training(run.job(), *disk, world.clock(), team, folder, 100);
        const Training::StopFlag never{false};
        all[static_cast<std::size_t>(world.rank())] = training.run(never);
      });
      for (const RunSummary& s : all) {
        EXPECT_EQ(s.test->metrics, alone.summary.test->metrics) << workers;
        EXPECT_EQ(s.test->loss, alone.summary.test->loss);
        EXPECT_EQ(s.validation->metrics, alone.summary.validation->metrics);
        EXPECT_EQ(s.best_step, alone.summary.best_step);
        EXPECT_EQ(s.best, alone.summary.best);
      }
    }
}

TEST(Parts, TheLossAndTheCutBelongToTheRun) {
  std::map<std::string, std::string> recipes, data;
  for (const auto& [data_keys, loss] :
       {std::pair("", ""), std::pair("", "[loss]\nlabel_smoothing = 0.1\n"), std::pair("", "[loss]\nfocal_gamma = 2\n"),
        std::pair("validation = 0.2\n", ""), std::pair("validation = 0.2\nsplit_seed = 3\n", "")}) {
    const test::TempDir dir;
    const PartsRun run(dir, {.data = data_keys, .train = "", .more = loss});
    recipes[run.job().recipe_fingerprint] = loss;
    data[run.job().data_fingerprint] = data_keys;
  }
  EXPECT_EQ(recipes.size(), 5u);
  EXPECT_EQ(data.size(), 3u) << "of the whole, and of two cuts";
}

TEST(Parts, EveryProblemOfMonitorMetricsAndLossIsNamed) {
  const auto complaint = [&](const PartsRecipe& r) {
    const test::TempDir dir;
    return test::complaint_of([&] { PartsRun run(dir, r); });
  };
  EXPECT_TRUE(test::says(complaint({.data = "", .train = "monitor = \"val_f1\"\n"}), "data.validation = 0.1"));
  EXPECT_TRUE(test::says(complaint({.train = "monitor = \"test_f1\"\n"}), "monitor val_f1"));
  EXPECT_TRUE(test::says(complaint({.train = "monitor = \"val_acuracy\"\n"}), "did you mean 'accuracy'"));
  EXPECT_TRUE(test::says(complaint({.train = "monitor = \"val_rmse\"\n"}), "has no meaning"));
  EXPECT_TRUE(test::says(complaint({.train = "monitor = \"val_f1_per_class\"\n"}), "several numbers"));
  EXPECT_TRUE(test::says(complaint({.train = "evaluate = false\nmonitor = \"val_f1\"\n"}), "train.evaluate is false"));
  const std::string text =
      complaint({.more = "[metrics]\nreport = [\"f2\", \"mae\"]\nreprot = 1\n[loss]\nname = \"mse\"\n"
                         "class_weights = [1, 2]\nquantiles = [0.5, 0.2]\ndleta = 3\n"});
  for (const char* part : {"mse", "cross_entropy", "has 2 numbers, but there are 4 classes", "must lie between 0 and 1",
                           "dleta", "delta", "reprot", "did you mean 'report'"})
    EXPECT_TRUE(test::says(text, part)) << part << " in " << text;
  EXPECT_TRUE(test::says(complaint({.more = "[metrics]\nreport = [\"f2\", \"mae\"]\n"}), "did you mean 'f1'"));
  EXPECT_TRUE(
      test::says(complaint({.more = "[loss]\nlabel_smoothing = 0.1\nfocal_gamma = 1\n"}), "exclude each other"));
}

}  // namespace
}  // namespace echelon
