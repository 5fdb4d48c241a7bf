// When workers exchange: which steps, and what is refused.

#include "parallel/when.h"

#include <gtest/gtest.h>

#include "tests/parallel/systems.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using namespace test;

std::string refusals(const std::string& system) {
  Problems problems;
  const Composition c = composition_of(system, problems);
  check_composition(c, {.workers = 4}, problems);
  return problems.text("");
}

TEST(When, IsDueEveryTauStepsOrWithAProbabilityOrNever) {
  const When every{.tau = 3}, sometimes{.probability = 0.25}, end{.at_end = true};
  int drawn = 0;
  for (std::int64_t step = 0; step < 4000; ++step) {
    const Stream random({7, static_cast<std::uint32_t>(step), 0, 0});
    EXPECT_EQ(every.due(step, random), step % 3 == 2);
    EXPECT_FALSE(end.due(step, random));
    drawn += sometimes.due(step, random);
  }
  EXPECT_NEAR(drawn, 1000, 100);
}

TEST(When, TheExchangesOldKeysAreAnsweredWithTheirNewNames) {
  for (const std::string key : {"tau", "probability", "at_end", "n_push", "n_fetch", "warm_start", "tau_down"})
    for (const std::string table :
         {"[exchange]\nname = 'server'\n", "[exchange]\nname = 'nested'\n[exchange.outer]\nname = 'server'\n"}) {
      Problems problems;
      composition_of(table + key + " = 1\n", problems);
      EXPECT_TRUE(says(problems.text(""), key + " is now when." + key));
      EXPECT_EQ(problems.list().size(), 1u) << problems.text("");
    }
}

TEST(When, SettingsThatAnExchangeDoesNotKnowAreRefused) {
  const std::string means = "[rule]\nname = 'param_mean'\n";
  EXPECT_TRUE(says(refusals(means + "[when]\ntau_down = 3\n"), "take exchange elastic_tree"));
  EXPECT_TRUE(says(refusals("[when]\nn_push = 2\n"), "take exchange server"));
  EXPECT_EQ(refusals(means + "[when]\ntau = 3\n"), "");
}

TEST(When, TauAndProbabilityExcludeEachOther) {
  Problems problems;
  composition_of("[rule]\nname = 'param_mean'\n[when]\ntau = 2\nprobability = 0.5\n", problems);
  EXPECT_TRUE(says(problems.text(""), "when.probability and tau exclude each other"));
}

}  // namespace
}  // namespace echelon
