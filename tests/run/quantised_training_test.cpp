// What training with few bits reaches on the digits that come with Echelon, beside whole numbers.
#include <gtest/gtest.h>

#include "models/wrappers/quantised.h"
#include "run/job.h"
#include "run/training/training.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

double accuracy(std::vector<std::string> settings) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  settings.emplace_back("train.eval_every_epochs=0");
  settings.emplace_back("train.checkpoint_every_epochs=0");
  Problems problems;
  const PreparedRun prepared = prepare_run(*disk, source_path("recipes/demo.toml"), settings, problems,
                                           {.root = "nowhere", .share = {source_path("share")}});
  problems.throw_if_any("demo.toml");
  const TrainingJob job = make_job(prepared);
  LocalTeam alone(1);
  Training training(job, *disk, *clock, alone.team, dir.path("c"), 1);
  const Training::StopFlag never{false};
  const RunSummary summary = training.run(never);
  return summary.test->accuracy;
}

TEST(QuantisedTraining, EverySchemeLearns) {
  for (const std::string& scheme : models::quantisation_schemes())
    EXPECT_GT(accuracy({"model.quantise.scheme=" + scheme, "train.epochs=4", "optim.lr=0.05"}), 0.8) << scheme;
}

TEST(SlowQuantisedTraining, ReachesTheAccuracyOfWholeNumbersLessALittle) {
  const double whole = accuracy({});
  ASSERT_GT(whole, 0.97);
  struct Case {
    std::vector<std::string> settings;
    double less;
  };
  const Case cases[] = {
      {{"model.quantise.scheme=dorefa"}, 0.015},  // 1-bit weights, 2-bit activations
      {{"model.quantise.scheme=ternary"}, 0.015},
      {{"model.quantise.scheme=flexpoint"}, 0.015},
      {{"model.quantise.scheme=fixed"}, 0.015},
      {{"model.quantise.scheme=halp"}, 0.015},
      {{"model.quantise.scheme=bnn", "model.quantise.activations_bits=32"}, 0.015},
      // Signs for activations cost a network as small as this more, and want a larger rate.
      {{"model.quantise.scheme=bnn", "optim.lr=0.05"}, 0.03},
  };
  for (const Case& c : cases) EXPECT_GE(accuracy(c.settings), whole - c.less) << c.settings[0];
}

}  // namespace
}  // namespace echelon
