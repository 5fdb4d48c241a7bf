// What is left out of pushes: filters, changes between sites, slices beyond a budget.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "parallel/server/budget.h"
#include "parallel/server/filter.h"
#include "parallel/server/sites.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;
using namespace exchanges;

std::vector<float> some_numbers(std::size_t n, std::uint32_t step, float scale = 1) {
  const Stream random({11, step, 0, 5});
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = scale * (random.uniform(i) - 0.5f);
  return values;
}

std::uint64_t bytes_sent_by(const std::vector<SystemResult>& ranks) {
  return std::accumulate(ranks.begin(), ranks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const SystemResult& r) { return sum + r.sent.bytes; });
}

TEST(PushFilter, WhatWasSentAndWhatIsKeptIsAllThereWas) {
  const FilterSettings settings{.significant = true, .threshold = 0.3, .skip = 0.3, .block = 7};
  PushFilter filter(settings, 100);
  FilterReader reader(settings, 100);
  const std::vector<float> weights = some_numbers(100, 99, 2);
  std::vector<float> total(100), came(100), part(100);
  bool left_out = false;
  for (std::uint32_t step = 0; step < 50; ++step) {
    const std::vector<float> values = some_numbers(100, step, 0.2f);
    for (std::size_t i = 0; i < 100; ++i) total[i] += values[i];
    reader.read(filter.write(values, weights, 1, Stream({1, step, 0, 9})), part);
    left_out |= filter.left_out() > 0;
    for (std::size_t i = 0; i < 100; ++i) came[i] += part[i];
  }
  EXPECT_TRUE(left_out);
  const auto kept = filter.state()[0].bytes;
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_NEAR(came[i] + reinterpret_cast<const float*>(kept.data())[i], total[i], 1e-5);
}

TEST(PushFilter, BlocksThatHardlyMoveTheirWeightsStay) {
  const FilterSettings settings{.significant = true, .threshold = 0.1, .block = 2};
  PushFilter filter(settings, 4);
  FilterReader reader(settings, 4);
  std::vector<float> out(4);
  const std::vector<float> weights{1, 1, 1, 1}, values{0.04f, 0, 0, 0.2f};
  reader.read(filter.write(values, weights, 1, Stream({1, 0, 0, 0})), out);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0.2f}));
  reader.read(filter.write(values, weights, 1, Stream({1, 1, 0, 0})), out);
  EXPECT_EQ(out[0], 0);  // 0.08 is not above the threshold
  reader.read(filter.write(values, weights, 1, Stream({1, 2, 0, 0})), out);
  EXPECT_NEAR(out[0], 0.12, 1e-6);
}

TEST(PushFilter, AListThatIsTheSameIsNotSentAgain) {
  const FilterSettings settings{.significant = true, .threshold = 0, .block = 4};
  PushFilter filter(settings, 16);
  const std::vector<float> ones(16, 1);
  const std::size_t first = filter.write(ones, ones, 1, Stream({1, 0, 0, 0})).size();
  const std::size_t second = filter.write(ones, ones, 1, Stream({1, 1, 0, 0})).size();
  EXPECT_EQ(first, 4 + 4 * 4 + 16 * 4u);
  EXPECT_EQ(second, 4 + 16 * 4u);
}

TEST(PushFilter, SkippingIsUnbiasedIfTheOthersAreMadeLarger) {
  const FilterSettings settings{.skip = 0.6, .unbiased = true, .block = 1};
  PushFilter filter(settings, 1000);
  FilterReader reader(settings, 1000);
  const std::vector<float> ones(1000, 1);
  std::vector<float> out(1000);
  double sum = 0;
  for (std::uint32_t step = 0; step < 100; ++step) {
    reader.read(filter.write(ones, ones, 1, Stream({1, step, 0, 0})), out);
    for (float v : out) sum += v;
  }
  EXPECT_NEAR(sum / 1e5, 1, 0.02);
}

TEST(PushFilter, BytesThatMakeNoSenseAreRefused) {
  const FilterSettings settings{.significant = true, .block = 4};
  FilterReader reader(settings, 16);
  std::vector<float> out(16);
  const std::vector<std::uint32_t> too_many{0x80000009u}, unknown{3}, wild{0x80000001u, 77, 0, 0, 0, 0};
  for (const auto& words : {too_many, unknown, wild})
    EXPECT_THROW(reader.read(std::as_bytes(std::span(words)), out), Failure);
  EXPECT_THROW(reader.read({}, out), Failure);
}

TEST(Filters, BytesFallAndTrainingConverges) {
  const std::string server = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n";
  const std::string sync = "\n[sync]\nname = 'delay'\nstaleness = 2\n";
  const auto all = simulate_system(4, {.system = server + sync, .steps = 60});
  const auto some = simulate_system(
      4, {.system = server + "filters = ['significant', 'skip']\nthreshold = 0.01\nskip = 0.2\nblock = 8" + sync,
          .steps = 60});
  EXPECT_GT(some[0].accuracy, 0.9);
  EXPECT_LT(static_cast<double>(bytes_sent_by(some)), 0.85 * static_cast<double>(bytes_sent_by(all)));
}

TEST(Sites, OnlyWhatIsSignificantCrossesAndNothingIsLost) {
  constexpr std::size_t n = 200;
  SignificantChanges changes(0.5, n);
  std::vector<float> here = some_numbers(n, 1, 4), there = here;
  const std::vector<float> start = here;
  for (std::int64_t t = 1; t <= 40; ++t) {
    changes.before_update(here);
    const auto step = some_numbers(n, static_cast<std::uint32_t>(t + 7), 0.3f);
    for (std::size_t i = 0; i < n; ++i) here[i] += step[i];
    changes.after_update(here);
    const std::vector<float> before = there, kept(changes.kept().begin(), changes.kept().end());
    SignificantChanges::apply(changes.take(here, t), there);
    const double threshold = SignificantChanges::threshold_at(0.5, t);
    for (std::size_t i = 0; i < n; ++i) {
      const bool significant = std::abs(kept[i]) > threshold * std::abs(here[i]);
      EXPECT_EQ(there[i] != before[i], significant && kept[i] != 0) << "number " << i << " at " << t;
    }
  }
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(there[i] + changes.kept()[i], here[i], 1e-4);
}

TEST(Sites, TheThresholdShrinks) {
  EXPECT_EQ(SignificantChanges::threshold_at(0.1, 1), 0.1);
  EXPECT_NEAR(SignificantChanges::threshold_at(0.1, 100), 0.01, 1e-12);
}

TEST(Sites, AreHostsOrRunsOfRanksAndHaveCounterparts) {
  EXPECT_EQ(sites_of(2, {0, 1, 2, 3, 4}), (std::vector<int>{0, 0, 0, 1, 1}));
  EXPECT_EQ(sites_of(0, {5, 5, 9}), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(counterparts({0, 0, 0, 1, 1}, 4), std::vector<Rank>{1});
  EXPECT_TRUE(counterparts({0, 0, 0, 1, 1}, 2).empty());
}

std::string gaia(double threshold) {
  return fmt::format(
      "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nsites = 2\nsite_threshold = {}\n[sync]\nname = "
      "'approximate'\n",
      threshold);
}

TEST(Sites, FewerNumbersCrossWithALargerThresholdAndItTrains) {
  const auto all = simulate_system(4, {.system = gaia(0), .steps = 60});
  const auto few = simulate_system(4, {.system = gaia(0.2), .steps = 60});
  EXPECT_LT(bytes_sent_by(few), bytes_sent_by(all));
  EXPECT_GT(all[0].accuracy, 0.9);
  EXPECT_GT(few[0].accuracy, 0.9);
  for (const SystemResult& r : few) EXPECT_TRUE(same_bits(r.model, few[0].model));
}

TEST(Sites, ASiteThatIsFarAheadWaits) {
  SystemJob job{.system = gaia(0.05) + "work = 'own'\nstaleness = 2\n", .steps = 30};
  job.stragglers = {{.rank = 2, .factor = 20}, {.rank = 3, .factor = 20}};
  const auto bounded = simulate_system(4, job);
  EXPECT_EQ(bounded[0].reached, 30);
  EXPECT_GT(bounded[0].accuracy, 0.8);
}

TEST(SliceBudget, NeverExceedsItsRoomAndNoSliceIsLaterThanAllowed) {
  for (const std::int64_t staleness : {0, 1, 3, 7}) {
    constexpr std::size_t slices = 23;
    const std::size_t most = SliceBudget::least(slices, staleness);
    SliceBudget budget(slices, staleness);
    std::vector<std::int64_t> last(slices, -1);
    for (std::int64_t step = 0; step < 200; ++step) {
      const auto significance = some_numbers(slices, static_cast<std::uint32_t>(step % 3));
      const auto& chosen = budget.choose(significance, most);
      EXPECT_LE(chosen.size(), most);
      EXPECT_TRUE(std::ranges::is_sorted(chosen, std::greater<>(), [&](auto s) { return significance[s]; }));
      for (const auto s : chosen) last[s] = step;
      for (const auto l : last) EXPECT_LE(step - l, staleness + (l < 0));
    }
  }
}

TEST(SliceBudget, TheLargestGoFirst) {
  SliceBudget budget(4, 100);
  EXPECT_EQ(budget.choose(std::vector<float>{1, 4, 2, 3}, 2), (std::vector<std::uint32_t>{1, 3}));
}

TEST(ByteBudget, GrowsWithTimeUpToItsMostAndMakesUpForWhatWasTooMuch) {
  ByteBudget room(100, 50);
  room.advance(7);
  EXPECT_EQ(room.bytes(), 0);
  room.advance(7.25);
  EXPECT_EQ(room.bytes(), 25);
  room.spend(35);
  room.advance(7.35);
  EXPECT_NEAR(room.bytes(), 0, 1e-9);
  room.advance(10);
  EXPECT_EQ(room.bytes(), 50);
}

// On links of 1 MB a second, over which a step takes as long as the model's pushes and answers would.
TEST(Magnitude, BothDirectionsStayWithinTheirShareOfTheLink) {
  constexpr double link = 1e6;
  const auto bytes_a_second = [&](double rate, const std::string& sync) {
    SystemJob job{
        .system = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n[sync]\nname = '" + sync +
                  "'\nstaleness = 60\n[order]\nname = 'magnitude'\nbytes = 64\nrate = " + fmt::format("{}\n", rate),
        .steps = 240};
    const auto all = simulate_system(4, job, SimCluster::uniform(4, 1e-6, link, 3e6));
    EXPECT_GT(all[0].accuracy, 0.9) << rate;
    double most = 0;
    for (const SystemResult& r : all) most = std::max(most, static_cast<double>(r.sent.bytes) / r.seconds);
    return most;
  };
  // Pushes and answers of a rank, each of that share; headers, work and reports besides.
  const double little = bytes_a_second(0.1, "essp");
  EXPECT_LT(little, 0.35 * link);
  EXPECT_GT(bytes_a_second(0.4, "essp"), 1.3 * little);
}

// The workers of the second of two sites are four times slower. A site's answers are held when it is more than
// `staleness` steps ahead of what it knows of the other; a step may be under way then.
TEST(Sites, AreNeverFurtherAheadThanTheMirrorClockAllows) {
  const auto lead = [](int staleness) {
    SystemJob job{.system = gaia(0.05) + fmt::format("work = 'own'\nstaleness = {}\n", staleness), .steps = 24};
    job.stragglers = {{.rank = 2, .factor = 4}, {.rank = 3, .factor = 4}};
    return simulate_system(4, job)[0].figures.at("most_site_lead");
  };
  EXPECT_GE(lead(1000), 10);
  for (const int staleness : {1, 4}) {
    EXPECT_LE(lead(staleness), staleness + 1);
    EXPECT_GE(lead(staleness), staleness);
  }
}

// On a slow link the announcement is there before the change, and readers wait for it.
TEST(Sites, LetReadersWaitForAChangeThatIsAnnounced) {
  const auto run = [](int barrier) {
    std::string system = gaia(0) + "work = 'own'\n";
    system.insert(system.find("sites = 2"), fmt::format("site_barrier = {}\n", barrier));
    SystemJob job{.system = system, .steps = 12};
    SimCluster cluster = SimCluster::uniform(4, 1e-6, 1e5);
    return simulate_system(4, job, cluster)[0].figures;
  };
  const auto announced = run(0), silent = run(1 << 20);
  EXPECT_GT(announced.at("site_barriers"), 0);
  EXPECT_EQ(silent.at("site_barriers"), 0);
  EXPECT_GT(announced.at("seconds_waited"), silent.at("seconds_waited"));
}

}  // namespace
}  // namespace echelon
