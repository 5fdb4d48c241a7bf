#include "run/training/find_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "recipe/prepare.h"
#include "run/job.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

TEST(SuggestRate, IsATenthOfTheRateWithTheLowestLoss) {
  std::vector<double> rates, losses;
  for (int i = 0; i < 100; ++i) {
    const double x = -6 + 0.07 * i;  // log10 of the rate; the loss falls about 1e-3 and rises from 1e-1 on
    rates.push_back(std::pow(10, x));
    losses.push_back(2 / (1 + std::exp(4 * (x + 3))) + (x > -1 ? 3 * (x + 1) : 0) + 0.01 * std::sin(9.0 * i));
  }
  const auto rate = suggest_rate(rates, losses);
  ASSERT_TRUE(rate.has_value());
  EXPECT_GT(*rate, 4e-3);  // lowest about 1e-1; smoothing lags behind by a few steps
  EXPECT_LT(*rate, 3e-2);
  for (double& loss : losses) loss = 3 - loss;  // it only grows before it falls at rates that are too high
  losses.resize(60), rates.resize(60);
  EXPECT_FALSE(suggest_rate(rates, losses).has_value());
  EXPECT_FALSE(suggest_rate(std::vector<double>{1, 2, 3}, std::vector<double>{3, 2, 1}).has_value());
  EXPECT_FALSE(suggest_rate({}, {}).has_value());
}

TEST(FindRate, FindsARateThatTrainsAndStopsWhereTheLossGrows) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_file_atomically(*disk, dir.path("r.toml"), std::string_view(R"([model]
name = "mlp"
hidden = [16]
[data]
kind = "synthetic"
make = "blobs"
samples = 200
[optim]
name = "sgd"
[train]
epochs = 1
batch = 20
)"));
  Problems problems;
  const PreparedRun prepared = prepare_run(*disk, dir.path("r.toml"), {}, problems);
  problems.throw_if_any("r.toml");
  const TrainingJob job = make_job(prepared);
  LocalTeam one(1), two(2);
  const RateSearch search{.least = 1e-4, .most = 1e4, .steps = 80};
  std::int64_t told = 0;
  const RateTrial trial = find_rate(job, search, one.team, [&](std::int64_t, double, double) { ++told; });
  EXPECT_TRUE(trial.diverged);
  EXPECT_LT(trial.losses.size(), 80u);
  EXPECT_EQ(told, static_cast<std::int64_t>(trial.losses.size()));
  ASSERT_TRUE(trial.suggested.has_value());
  EXPECT_GT(*trial.suggested, 1e-3);
  EXPECT_LT(*trial.suggested, 100);
  const RateTrial again = find_rate(job, search, two.team);  // the same on any number of cores
  EXPECT_EQ(again.losses, trial.losses);
  EXPECT_EQ(again.suggested, trial.suggested);
}

}  // namespace
}  // namespace echelon
