// Workers that lie: what the rules that see every contribution by itself make of them, and what a mean does.

#include "parallel/team/byzantine.h"

#include <gtest/gtest.h>

#include "tests/run/digits.h"

namespace echelon {
namespace {

using namespace test;

struct Attack {
  const char* system;
  Lie lie;
  double strength;
  int workers = 10, liars = 2;  // a fifth
};

class UnderAttack : public testing::TestWithParam<Attack> {};

std::string system_path(const std::string& name) { return shipped[0] + "/" + name + ".toml"; }

// Each worker needs so large a part that honest gradients resemble each other, the more the fewer of them a rule uses.
// FoolsGold is for honest workers that have data of their own.
std::vector<std::string> settings_for(const std::string& system) {
  if (system == "krum" || system == "median" || system == "bulyan")
    return {"train.batch=1000", "train.epochs=30", "optim.lr=0.1"};
  std::vector<std::string> settings{"train.batch=320", "train.epochs=8", "optim.lr=0.1"};
  if (system == "foolsgold") settings.insert(settings.end(), {"data.partition='fixed'", "data.dirichlet=0.5"});
  return settings;
}

TEST_P(UnderAttack, EndsNearTheHonestRunWhereTheMeanFails) {
  const Attack a = GetParam();
  const Byzantine byzantine{.count = a.liars, .lie = a.lie, .strength = a.strength};
  const auto settings = settings_for(a.system);
  const double honest = accuracy_on_digits(system_path("bigdl"), a.workers - a.liars, {.overrides = settings});
  const double defended =
      accuracy_on_digits(system_path(a.system), a.workers, {.overrides = settings, .byzantine = byzantine});
  double mean = 0;  // also where its loss is no number any more
  try {
    mean = accuracy_on_digits(system_path("bigdl"), a.workers, {.overrides = settings, .byzantine = byzantine});
  } catch (const Error&) {
  }
  fmt::print("{}: {:.2f} % (honest workers alone: {:.2f} %, their mean with the liars: {:.2f} %)\n", a.system,
             100 * defended, 100 * honest, 100 * mean);
  EXPECT_GE(defended, honest - 0.03);
  EXPECT_LT(mean, honest - 0.2);
}

std::string attacked_system(const testing::TestParamInfo<Attack>& info) { return info.param.system; }

INSTANTIATE_TEST_SUITE_P(Shipped, UnderAttack,
                         testing::Values(Attack{"multi_krum", Lie::random, 100},
                                         Attack{"trimmed_mean", Lie::scaled, 100},
                                         Attack{"foolsgold", Lie::colluding, 10}),
                         attacked_system);
INSTANTIATE_TEST_SUITE_P(SlowShipped, UnderAttack,
                         testing::Values(Attack{"krum", Lie::sign_flip, 10}, Attack{"median", Lie::colluding, 10},
                                         Attack{"bulyan", Lie::sign_flip, 10, 15, 3}),
                         attacked_system);

}  // namespace
}  // namespace echelon
