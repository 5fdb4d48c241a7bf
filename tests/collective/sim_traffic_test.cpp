// The simulated world counts what every rank sends: exactly what the algorithms say of themselves.

#include <gtest/gtest.h>

#include <vector>

#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

SimReport simulate(int ranks, const Program& program) {
  const SimReport report = run_in_simulation(SimCluster::uniform(ranks, 5e-6, 1.25e9), {}, program);
  report.throw_if_failed();
  return report;
}

MemberTraffic sent(const SimReport& report, int rank) {
  const SimRankReport& r = report.ranks[static_cast<std::size_t>(rank)];
  return {r.messages_sent, r.bytes_sent};
}

TEST(SimTraffic, EveryAlgorithmSendsExactlyWhatItSays) {
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (!a.plan) continue;
    for (const int n : {1, 2, 3, 4, 5, 8, 13})
      for (const std::size_t count : {0u, 1u, 3u, 1000u, 100003u}) {
        const SimReport report = simulate(n, [&](World& world) {
          Group group = Group::everyone(world);
          std::vector<float> x(count, 1.0f);
          all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &a});
          for (const float v : x)
            if (v != static_cast<float>(world.size())) fail("{} with {} ranks gives {}", a.name, world.size(), v);
        });
        std::vector<int> hosts;
        for (int r = 0; r < n; ++r) hosts.push_back(r);  // a uniform cluster has a machine for each rank
        for (int r = 0; r < n; ++r) {
          const HostTopology topology = host_topology_of(hosts, r);
          const MemberTraffic says = a.traffic({.n = n, .index = r, .count = count, .item = 4, .hosts = &topology});
          EXPECT_EQ(sent(report, r), says)
              << a.name << ", rank " << r << " of " << n << ", " << count << " numbers: " << sent(report, r).messages
              << " messages, " << sent(report, r).bytes << " bytes; says " << says.messages << ", " << says.bytes;
        }
      }
  }
}

TEST(SimTraffic, TheSumOverShardsSendsExactlyWhatItSays) {
  for (const int shards : {1, 2, 5, 8})
    for (const int n : {2, 3, 4, 8}) {
      constexpr std::size_t elements = 1000;
      const SimReport report = simulate(n, [&](World& world) {
        Group group = Group::everyone(world);
        const ShardRange mine = shards_of(group.index(), n, shards);
        std::vector<float> data(elements, 1.0f), out(elements);
        std::vector<PartialSum> partials;
        for (int s = mine.first; s < mine.last; ++s) partials.push_back({s, s + 1, data.data()});
        all_reduce_shards(group, {shards, partials, 0, elements, out.data()});
        for (const float v : out)
          if (v != static_cast<float>(shards)) fail("{} instead of {}", v, shards);
      });
      for (int r = 0; r < n; ++r) EXPECT_EQ(sent(report, r), shard_sum_traffic(r, n, shards, elements)) << r << n;
    }
}

TEST(SimTraffic, AutoPicksFewStepsForSmallAndFewBytesForLargeNumbers) {
  simulate(16, [](World& world) {
    Group group = Group::everyone(world);
    const auto small = choose_all_reduce(group, 64).name, large = choose_all_reduce(group, 100'000'000).name;
    if (small != "recursive-doubling") fail("{} for 64 bytes", small);
    if (large == "recursive-doubling" || large == "binomial") fail("{} for 100 MB", large);
  });
}

// On a uniform network the prediction is what happens, within the small differences of how messages overlap.
TEST(SimTraffic, PredictedSecondsAreNearTheSimulatedOnes) {
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (!a.plan) continue;
    for (const std::size_t count : {16u, 1'000'000u}) {
      constexpr int n = 8;
      simulate(n, [&](World& world) {
        Group group = Group::everyone(world);
        const LinkCosts link = link_costs(group);
        std::vector<float> x(count);
        barrier(group);
        const double start = world.now();
        all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &a});
        double took = world.now() - start;
        all_reduce(group, std::span(&took, 1), Reduction::max);
        LinkCosts free = link;
        free.combine_per_byte = 0;  // a simulation takes no time for arithmetic that is not declared
        const double says = a.seconds(static_cast<double>(count * 4), n, free);
        if (world.rank() == 0 && (took > 2.5 * says || took < 0.35 * says))
          fail("{} of {} numbers takes {:.3g} s, predicted {:.3g} s", a.name, count, took, says);
      });
    }
  }
}

}  // namespace
}  // namespace echelon
