// Rules that see every contribution by itself, on numbers small enough to work out on paper; and what liars send.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "parallel/team/byzantine.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

// What a rule makes of the workers' numbers in the last of these rounds, when each of `owners` places has a part of
// them.
std::vector<float> merged_in_rounds(const std::string& rule, const std::vector<std::vector<std::vector<float>>>& rounds,
                                    std::size_t owners) {
  Problems problems;
  const Options table = parse_toml(rule, "rule");
  OptionReader reader(table, problems);
  const auto made = read_rule(reader);
  problems.throw_if_any("rule");
  const std::size_t n = rounds[0].size(), floats = rounds[0][0].size(), part = floats / owners;
  std::vector<std::unique_ptr<EachSide>> sides;
  for (std::size_t o = 0; o < owners; ++o) sides.push_back(made->make_each(part, static_cast<int>(n)));
  std::vector<float> out(floats);
  for (const auto& each : rounds) {
    std::vector<double> products(n * n), all(n * n);
    const auto views = [&](std::size_t o) {
      std::vector<std::span<const float>> v;
      for (const auto& e : each) v.push_back(std::span(e).subspan(o * part, part));
      return v;
    };
    for (std::size_t o = 0; o < owners && made->traits().compares_each; ++o) {
      sides[o]->compare(views(o), products);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += products[i];
    }
    for (std::size_t o = 0; o < owners; ++o) sides[o]->merge(views(o), all, std::span(out).subspan(o * part, part));
  }
  return out;
}

std::vector<float> merged(const std::string& rule, const std::vector<std::vector<float>>& each, std::size_t owners,
                          std::size_t rounds = 1) {
  return merged_in_rounds(rule, std::vector(rounds, each), owners);
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

TEST(Krum, TakesTheContributionWhoseNeighboursAreNearest) {
  // Of 5 workers one may lie: 2 neighbours count. 2.0 has 1.9 and 2.2 near it.
  const std::vector<std::vector<float>> each{{1.6f, 0}, {1.9f, 0}, {2.0f, 0}, {2.2f, 0}, {100, 0}};
  for (const std::size_t owners : {1, 2}) EXPECT_EQ(merged("name='krum'\nliars=1", each, owners)[0], 2.0f);
  EXPECT_NEAR(merged("name='krum'\nliars=1\nkeep=0", each, 2)[0], (1.6f + 1.9f + 2.0f + 2.2f) / 4, 1e-6);
  // Distances are those of whole contributions: an owner that sees nothing odd leaves the liar out too.
  const std::vector<std::vector<float>> hidden{{1, 0}, {1, 0}, {1, 0}, {1, 0}, {2, 50}};
  EXPECT_EQ(merged("name='krum'\nliars=1\nkeep=0", hidden, 2)[0], 1);
}

TEST(Krum, NeverTakesWhatIsNoNumber) {
  const std::vector<std::vector<float>> each{{1}, {1.1f}, {not_a_number}, {1.2f}, {1.3f}};
  EXPECT_TRUE(std::isfinite(merged("name='krum'\nliars=1\nkeep=0", each, 1)[0]));
}

TEST(TrimmedMean, LeavesOutTheEndsOfEveryNumber) {
  const std::vector<std::vector<float>> each{{-100, 1}, {1, 2}, {2, 3}, {6, 400}, {50, 7}};
  const auto mean = merged("name='trimmed_mean'\nliars=1", each, 2);
  EXPECT_EQ(mean[0], 3);
  EXPECT_EQ(mean[1], 4);
  EXPECT_EQ(merged("name='trimmed_mean'\nliars=2", each, 1)[0], 2);
}

TEST(Median, IsTheMiddleOrTheMeanOfBoth) {
  EXPECT_EQ(merged("name='median'", {{5}, {1}, {1000}}, 1)[0], 5);
  EXPECT_EQ(merged("name='median'", {{5}, {1}, {7}, {1000}}, 1)[0], 6);
  EXPECT_EQ(merged("name='median'", {{5}, {1}, {not_a_number}}, 1)[0], 5);
}

// A liar that is near enough to all to be chosen, and off in one number.
TEST(Bulyan, TrimsTheNumbersOfWhatKrumHasChosen) {
  const std::vector<std::vector<float>> each{{0, 0},    {0.1f, 0},    {0.2f, 0},   {0.1f, 0.1f},
                                             {0, 0.1f}, {0.2f, 0.1f}, {0.1f, 0.3f}};
  const auto kept = merged("name='bulyan'\nliars=1", each, 2);
  EXPECT_LE(kept[1], 0.1f);  // of five that are chosen the three nearest to the median count
  EXPECT_GE(kept[1], 0);
  EXPECT_EQ(merged("name='bulyan'", {{1}, {2}, {6}}, 1)[0], 3);  // nobody lies among so few: the mean
}

// The first one is far from all others, but near to the middle in the number that is looked at.
TEST(Bulyan, ChoosesAsKrumDoes) {
  const auto kept = merged("name='bulyan'\nliars=1", {{2.5f, 100}, {0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}, 2);
  EXPECT_EQ(kept[0], 2);  // of 0 to 4
  EXPECT_EQ(kept[1], 0);
}

// Two that have said different things before are not one, whatever they say now.
TEST(FoolsGold, LooksAtAllThatWasSaid) {
  const auto v = merged_in_rounds("name='foolsgold'", {{{9, 0}, {0, 9}, {0, -9}}, {{1, 1}, {1, 1}, {0, -1}}}, 2);
  EXPECT_NEAR(v[0], 2.0f / 3, 1e-5);
  EXPECT_NEAR(v[1], 1.0f / 3, 1e-5);
}

TEST(FoolsGold, CountsThoseLittleThatAlwaysSayTheSame) {
  const std::vector<std::vector<float>> each{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, -9}, {0, 0, 0, -9}};
  const auto v = merged("name='foolsgold'", each, 2, 3);
  EXPECT_NEAR(v[0], 1.0f / 3, 1e-5);
  EXPECT_EQ(v[3], 0);
}

SystemJob liars_job(const std::string& rule, Byzantine byzantine) {
  return {.system = rule + "\n[exchange]\nname = '" +
                    (rule.find("mean") == std::string::npos ? "all_to_all'" : "owner_shard'"),
          .steps = 3,
          .byzantine = byzantine};
}

TEST(Byzantine, OneLiarChangesTheMeanAndNotTheChoiceOfKrum) {
  const Byzantine flips{.count = 1, .lie = Lie::sign_flip, .strength = 1000};
  const auto honest = simulate_system(5, liars_job("[rule]\nname = 'grad_mean'", {}))[0];
  const auto mean = simulate_system(5, liars_job("[rule]\nname = 'grad_mean'", flips))[0];
  const auto krum = simulate_system(5, liars_job("[rule]\nname = 'krum'", flips))[0];
  const auto moved = [&](const SystemResult& r) {
    double most = 0;
    for (std::size_t i = 0; i < r.weights.size(); ++i)
      most = std::max<double>(most, std::abs(r.weights[i] - honest.weights[i]));
    return most;
  };
  EXPECT_GT(moved(mean), 10 * moved(krum));
}

// What the last worker's gradient becomes, of three whose gradients are 1, 3 and 5.
float told(Byzantine byzantine, std::uint64_t seed = 1) {
  std::vector<float> said(3);
  run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {}, [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    Liar liar(byzantine, team, seed, 4);
    std::vector<float> gradient(4, 1.0f + 2.0f * static_cast<float>(world.rank()));
    liar.change(gradient, {{.offset = 0, .size = 3}, {.offset = 3, .size = 1, .statistic = true}}, 7);
    said[static_cast<std::size_t>(world.rank())] = gradient[1];
    EXPECT_EQ(gradient[3], 1.0f + 2.0f * static_cast<float>(world.rank()));  // statistics are no gradient
  }).throw_if_failed();
  EXPECT_EQ(said[0], 1);
  EXPECT_EQ(said[1], 3);
  return said[2];
}

TEST(Byzantine, TellsEachKindOfLie) {
  EXPECT_EQ(told({1, Lie::sign_flip, 4}), -20);
  EXPECT_EQ(told({1, Lie::scaled, 4}), 20);
  EXPECT_EQ(told({1, Lie::label_flip, 1}), 5);                // its samples lie
  EXPECT_EQ(told({1, Lie::colluding, 4}), -8);                // the honest mean is 2
  EXPECT_NEAR(told({1, Lie::little_is_enough, 2}), 0, 1e-6);  // and their deviation is 1
  EXPECT_NE(told({1, Lie::random, 4}), told({1, Lie::random, 4}, 2));
  EXPECT_EQ(told({1, Lie::random, 4}), told({1, Lie::random, 4}));
}

TEST(Byzantine, IsRefusedWhereItCannotBe) {
  const auto text = [](const Byzantine& byzantine, const std::string& system, int workers) {
    Problems composing, problems;
    const Composition c = composition_of(system, composing);
    check_byzantine(byzantine, system.empty() ? nullptr : &c, workers, false, problems);
    return problems.empty() ? std::string() : problems.text("recipe");
  };
  const std::string krum = "[rule]\nname='krum'\n[exchange]\nname='all_to_all'";
  EXPECT_EQ(text({2, Lie::sign_flip, 1}, krum, 10), "");
  EXPECT_NE(text({5, Lie::sign_flip, 1}, krum, 5).find("at least one has to be honest"), std::string::npos);
  EXPECT_NE(text({1, Lie::sign_flip, 1}, "", 5).find("exact training"), std::string::npos);
  EXPECT_NE(text({1, Lie::label_flip, 1}, krum, 5).find("one class each"), std::string::npos);
  EXPECT_NE(text({1, Lie::scaled, 1}, "[rule]\nname='param_mean'", 5).find("exchange weights"), std::string::npos);
  EXPECT_NE(text({1, Lie::scaled, 1}, "[order]\nname='fusion'", 5).find("order.name=whole"), std::string::npos);
  EXPECT_NE(
      text({1, Lie::colluding, 1}, "[rule]\nname='grad_push'\n[exchange]\nname='server'\n[order]\nname='whole'", 5)
          .find("at the same step"),
      std::string::npos);
}

TEST(RobustRules, SayHowManyLiarsTheyBear) {
  const auto text = [](const std::string& rule, int workers) {
    Problems problems;
    const Composition c = composition_of("[rule]\n" + rule + "\n[exchange]\nname='all_to_all'", problems);
    check_composition(c, {.workers = workers}, problems);
    return problems.empty() ? std::string() : problems.text("recipe");
  };
  EXPECT_EQ(text("name='krum'\nliars=2", 7), "");
  EXPECT_NE(text("name='krum'\nliars=2", 6).find("bears 1 liars among 6 workers (n >= 2 liars + 3)"),
            std::string::npos);
  EXPECT_EQ(text("name='bulyan'\nliars=2", 11), "");
  EXPECT_NE(text("name='bulyan'\nliars=2", 10).find("n >= 4 liars + 3"), std::string::npos);
  EXPECT_NE(text("name='trimmed_mean'\nliars=3", 6).find("n >= 2 liars + 1"), std::string::npos);
  EXPECT_NE(text("name='krum'\nkeep=9", 7).find("more than 7 workers send"), std::string::npos);
  Problems problems;
  const Composition c = composition_of("[rule]\nname='median'", problems);
  check_composition(c, {.workers = 4}, problems);
  EXPECT_NE(problems.text("recipe").find("take exchange all_to_all"), std::string::npos);
}

}  // namespace
}  // namespace echelon
