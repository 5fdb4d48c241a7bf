// Trees of servers, merging inside a host, groups under a server: sums on the way to where contributions meet.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/exchanges/overlay.h"
#include "tests/parallel/results.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using namespace test;
using exchanges::children_of;
using exchanges::Overlay;
using exchanges::parent_of;

std::string server(const std::string& settings, const std::string& sync = "bsp",
                   const std::string& rule = "grad_push") {
  return fmt::format("[rule]\nname = '{}'\n[exchange]\nname = 'server'\n{}\n[sync]\nname = '{}'\n", rule, settings,
                     sync);
}

SimCluster two_hosts(int each) {
  SimCluster c;
  c.switches.push_back({.name = "s", .uplink = 1e9, .latency = 1e-5});
  for (const char* name : {"a", "b"}) c.machines.push_back({.name = name, .ranks = each});
  return c;
}

TEST(Overlay, EveryRankReachesTheRootAndNobodyHasMoreChildrenThanTheFanout) {
  for (int n : {1, 2, 3, 7, 16, 31})
    for (int fanout : {1, 2, 3, 5})
      for (Rank root : {0, n / 2, n - 1}) {
        const Overlay tree{.kind = Overlay::Kind::tree, .fanout = fanout};
        const std::vector<int> hosts(static_cast<std::size_t>(n));
        for (Rank r = 0; r < n; ++r) {
          EXPECT_LE(children_of(tree, r, root, hosts).size(), static_cast<std::size_t>(fanout));
          Rank at = r;
          for (int hops = 0; at != root; ++hops) {
            ASSERT_LT(hops, n);
            at = parent_of(tree, at, root, hosts);
          }
        }
      }
}

TEST(Overlay, OneRankOfEachHostWritesToTheRoot) {
  const std::vector<int> hosts{0, 0, 1, 1, 2, 1};
  const Overlay overlay{.kind = Overlay::Kind::hosts};
  EXPECT_EQ(children_of(overlay, 1, 1, hosts), (std::vector<Rank>{0, 2, 4}));
  EXPECT_EQ(children_of(overlay, 2, 1, hosts), (std::vector<Rank>{3, 5}));
}

TEST(ServerTree, SumsAreThoseOfTheFlatServerAndTheRootHearsOnlyItsChildren) {
  constexpr int workers = 7, steps = 6;
  const auto flat = simulate_system(workers, {.system = server("servers = 1"), .steps = steps, .batch = 35});
  const auto tree =
      simulate_system(workers, {.system = server("servers = 1\nfanout = 2"), .steps = steps, .batch = 35});
  EXPECT_LT(largest_difference(flat[0].model, tree[0].model), 1e-5);
  // The root answers whom it has heard: six others, or two. An answer is two messages; that to the end of a run is one.
  EXPECT_EQ(flat[0].sent.messages - tree[0].sent.messages, (2 * steps + 1) * (workers - 1 - 2));
  EXPECT_GT(largest_difference(flat[0].model, std::vector<float>(flat[0].model.size())), 0.1);
}

TEST(ServerTree, EveryServerHasATreeOfItsOwn) {
  const auto flat = simulate_system(5, {.system = server("servers = 'all'"), .steps = 5, .batch = 30});
  const auto tree = simulate_system(5, {.system = server("servers = 'all'\nfanout = 2"), .steps = 5, .batch = 30});
  EXPECT_LT(largest_difference(flat[0].model, tree[0].model), 1e-5);
  for (std::size_t r = 1; r < 5; ++r) EXPECT_TRUE(same_bits(tree[r].model, tree[0].model));
}

TEST(ServerTree, CarriesACodec) {
  const std::string codec = "[codec]\nname = 'one_bit'\n";
  const auto tree = simulate_system(5, {.system = server("fanout = 2") + codec, .steps = 60, .batch = 30});
  EXPECT_GT(tree[0].accuracy, 0.9);
}

TEST(ServerTree, WithoutRoundsASlowSiblingHoldsNobodyUp) {
  const std::string system = server("fanout = 2", "async") + "work = 'own'\n";
  const auto even = simulate_system(6, {.system = system, .steps = 20, .batch = 30});
  EXPECT_GT(even[0].accuracy, 0.9);
  SystemJob common{.system = server("fanout = 2", "async"), .steps = 20, .batch = 30};
  const auto fast = simulate_system(6, common);
  common.stragglers = {{.rank = 5, .factor = 50}};
  const auto slow = simulate_system(6, common);
  EXPECT_EQ(slow[0].samples, even[0].samples);
  EXPECT_LT(slow[0].seconds, 20 * fast[0].seconds);  // in rounds it would be fifty times
}

TEST(TwoLevels, OneMessageLeavesTheHost) {
  constexpr int steps = 5;
  const auto flat = simulate_system(6, {.system = server("servers = 1"), .steps = steps, .batch = 30}, two_hosts(3));
  const auto merged = simulate_system(
      6, {.system = server("servers = 1\ntwo_level = true"), .steps = steps, .batch = 30}, two_hosts(3));
  EXPECT_LT(largest_difference(flat[0].model, merged[0].model), 1e-5);
  // The server's rank answered three ranks of the other host, and now one: the others hear it from that one.
  const std::size_t message = 48 + 4 * flat[0].model.size();
  EXPECT_EQ(flat[0].sent.bytes - merged[0].sent.bytes, 2 * (steps * message + 48));
  EXPECT_EQ(merged[3].sent.bytes - flat[3].sent.bytes, 2 * (steps * message + 48));
  EXPECT_EQ(merged[4].sent.bytes, flat[4].sent.bytes);
}

TEST(Nested, EqualsTheFlatServerWhereBothAreSynchronous) {
  for (const char* rule : {"grad_push", "grad_mean", "param_mean"}) {
    SCOPED_TRACE(rule);
    const auto flat = simulate_system(6, {.system = server("", "bsp", rule), .steps = 8, .batch = 30});
    const auto nested =
        simulate_system(6, {.system = fmt::format("[rule]\nname='{}'\n[exchange]\nname = 'nested'\ngroup = 3\n", rule),
                            .steps = 8,
                            .batch = 30});
    EXPECT_LT(largest_difference(flat[0].model, nested[0].model), 1e-5);
    for (std::size_t r = 1; r < 6; ++r) EXPECT_TRUE(same_bits(nested[r].model, nested[0].model));
  }
}

TEST(Nested, MembersOfAGroupStayTheSameWhileGroupsDiffer) {
  const std::string system =
      "[rule]\nname='grad_push'\n[exchange]\nname = 'nested'\ngroup = 2\n[sync]\nname = 'async'\nwork = 'own'\n";
  const auto ranks = simulate_system(4, {.system = system, .steps = 30, .stragglers = {{.rank = 2, .factor = 3}}});
  EXPECT_TRUE(same_bits(ranks[0].weights, ranks[1].weights));
  EXPECT_TRUE(same_bits(ranks[2].weights, ranks[3].weights));
  EXPECT_FALSE(same_bits(ranks[0].weights, ranks[2].weights));
  EXPECT_GT(ranks[0].accuracy, 0.9);
  EXPECT_EQ(ranks[3].figures.at("updates"), 60);  // two groups, 30 steps each
}

TEST(Nested, AGroupStepsByTheAnswerToEveryPush) {
  for (const std::string key : {"n_push", "n_fetch", "warm_start"}) {
    Problems problems;
    const Composition c = composition_of("[rule]\nname='grad_push'\n[exchange]\nname = 'nested'\n[when]\n" + key +
                                             " = 2\n[sync]\nname = 'async'\nwork = 'own'\n",
                                         problems);
    EXPECT_TRUE(problems.empty()) << problems.text("");
    check_composition(c, {.workers = 4}, problems);
    EXPECT_TRUE(says(problems.text(""), "leave them out, or take exchange server"));
  }
}

}  // namespace
}  // namespace echelon
