#include "foresight/search/search.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "foresight/search/markov.h"

namespace echelon::foresight {

namespace {

// A chain of random layers: work, weights and outputs differ by a factor of a hundred.
SearchProblem random_chain(std::uint64_t seed, int layers, int devices, bool two_levels) {
  const Stream random({.seed = seed, .layer = stream_layer("test.chain")});
  std::uint64_t drawn = 0;
  const auto size = [&] { return std::pow(10.0, 2.0 * random.uniform(drawn++)); };
  SearchProblem p{.layers = {}, .devices = devices, .links = {}};
  for (int l = 0; l < layers; ++l)
    p.layers.push_back({.name = "l" + std::to_string(l),
                        .seconds = 1e-3 * size(),
                        .weight_bytes = 1e4 * size(),
                        .out_bytes = 1e4 * size(),
                        .splits = random.uniform(drawn++) < 0.7});
  if (two_levels) p.links.push_back({.devices = 2, .per_byte = 1e-9, .latency = 1e-6});
  p.links.push_back({.devices = devices, .per_byte = 2e-8, .latency = 2e-5});
  return p;
}

// Every partition into stages with replicas, without any dynamic programming.
double best_partition_by_hand(const SearchProblem& p, std::vector<LayerPlace>& places, int used) {
  if (places.size() == p.layers.size()) return strategy_seconds(p, places);
  double best = std::numeric_limits<double>::infinity();
  if (!places.empty()) {
    places.push_back(places.back());
    best = std::min(best, best_partition_by_hand(p, places, used));
    places.pop_back();
  }
  for (int replicas = 1; used + replicas <= p.devices; ++replicas) {
    places.push_back({.stage = places.empty() ? 0 : places.back().stage + 1, .replicas = replicas});
    best = std::min(best, best_partition_by_hand(p, places, used + replicas));
    places.pop_back();
  }
  return best;
}

TEST(PartitionSearch, IsTheBestOfAllPartitionsUpToTwelveLayersAndFourWorkers) {
  std::uint64_t seed = 0;
  for (int layers = 1; layers <= 12; ++layers)
    for (int devices = 1; devices <= 4; ++devices)
      for (int repeat = 0; repeat < 3; ++repeat) {
        const SearchProblem p = random_chain(++seed, layers, devices, repeat == 1);
        std::vector<LayerPlace> places;
        const double wanted = best_partition_by_hand(p, places, 0);
        const Strategy found = partition_search(p, {});
        EXPECT_TRUE(is_valid(p, found.layers));
        EXPECT_NEAR(strategy_seconds(p, found.layers), found.seconds, 1e-12);
        EXPECT_LE(found.seconds, wanted * 1.02) << "layers " << layers << " devices " << devices << " seed " << seed;
        EXPECT_GE(found.seconds, wanted * (1 - 1e-9));
      }
}

TEST(LayerWiseSearch, IsTheBestOfAllConfigurationsOnAChain) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SearchProblem p = random_chain(seed, 5, 4, seed % 2 == 0);
    p.stages = false;
    const Strategy found = layer_wise_search(p, {});
    EXPECT_TRUE(is_valid(p, found.layers));
    // All devices are always used there; the exhaustive search may leave some idle, which is another strategy.
    double wanted = std::numeric_limits<double>::infinity();
    std::vector<LayerPlace> places(p.layers.size());
    const auto choices = configurations(p, 0, p.devices);
    const std::size_t all = static_cast<std::size_t>(std::pow(choices.size(), places.size()));
    for (std::size_t code = 0; code < all; ++code) {
      std::size_t rest = code;
      for (LayerPlace& at : places) at = choices[rest % choices.size()], rest /= choices.size();
      wanted = std::min(wanted, strategy_seconds(p, places));
    }
    EXPECT_NEAR(found.seconds, wanted, wanted * 1e-9) << seed;
    EXPECT_NEAR(strategy_seconds(p, found.layers), found.seconds, wanted * 1e-9);
  }
}

TEST(MarkovSearch, ReSimulatesWhatAChangeTouchesAndNothingElse) {
  SearchProblem p = random_chain(3, 9, 8, true);
  p.stages = false;
  MarkovWalk walk(p);
  const Stream random({.seed = 5, .layer = stream_layer("test.walk")});
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::size_t l = random.below(9, 2 * i);
    const auto& choices = walk.choices(l);
    const LayerPlace place = choices[random.below(static_cast<std::uint32_t>(choices.size()), 2 * i + 1)];
    std::vector<LayerPlace> changed = walk.places();
    changed[l] = place;
    const double whole = strategy_seconds(p, changed);
    ASSERT_NEAR(walk.with(l, place), whole, whole * 1e-9);
    walk.take(l, place);
    ASSERT_NEAR(walk.seconds(), whole, whole * 1e-9);
  }
}

TEST(MarkovSearch, FindsWhatDynamicProgrammingFinds) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SearchProblem p = random_chain(100 + seed, 10, 8, true);
    p.stages = false;
    const double wanted = layer_wise_search(p, {}).seconds, found = markov_search(p, {.seed = seed}).seconds;
    EXPECT_GE(found, wanted * (1 - 1e-9));
    EXPECT_LE(found, wanted * 1.02) << seed;
  }
}

TEST(BeamSearch, IsCloseToTheBestOfTheWholeSpace) {
  double worst = 1;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SearchProblem p = random_chain(200 + seed, 4, 4, seed % 2 == 0);
    const Strategy wanted = exhaustive_search(p, {}), found = beam_search(p, {.width = 256});
    EXPECT_TRUE(is_valid(p, found.layers));
    EXPECT_NEAR(strategy_seconds(p, found.layers), found.seconds, 1e-9);
    EXPECT_GE(found.seconds, wanted.seconds * (1 - 1e-9));
    worst = std::max(worst, found.seconds / wanted.seconds);
  }
  EXPECT_LE(worst, 1.05);
}

TEST(Searches, AreATableThatAReaderCanOpen) {
  for (const SearchKind& kind : searches()) EXPECT_EQ(find_search(kind.name), &kind);
  EXPECT_EQ(find_search("guess"), nullptr);
}

}  // namespace

}  // namespace echelon::foresight
