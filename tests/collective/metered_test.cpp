// Collectives behind slow links (world/wrappers/metered.h): they send what they say, take as long as the links allow,
// and give the same bits as without.

#include "world/wrappers/metered.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "world/launch.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

std::vector<float> random_floats(int rank, std::size_t count) {
  const Stream random({.seed = 3, .shard = static_cast<std::uint32_t>(rank)});
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = random.uniform(i) - 0.3f;
  return x;
}

TEST(MeteredCollectives, ARingTakesAsLongAsItsLinksAllow) {
  constexpr double rate = 12.5e6, latency = 1e-4;
  constexpr std::size_t count = 1 << 20;
  for (const int n : {2, 3, 4, 8}) {
    double seconds = 0;
    run_in_simulation(SimCluster::uniform(n, 0, 1e18), {}, [&](World& inner) {
      const auto world = make_metered(inner, {rate, latency});
      Group group = Group::everyone(*world);
      std::vector<float> x(count, 1.0f);
      all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &find_algorithm("ring")});
      seconds = std::max(seconds, world->now());
    }).throw_if_failed();
    const double steps = 2 * (n - 1), model = steps * (4.0 * count / n / rate + latency);
    EXPECT_NEAR(seconds, model, 0.001 * model) << n << " ranks";
  }
}

TEST(MeteredCollectives, EveryAlgorithmIsCountedAsItSaysAndGivesTheSameBits) {
  constexpr std::size_t count = 10007;
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (!a.plan) continue;
    const int n = 4;
    std::vector<std::vector<float>> results[2];
    for (const bool limited : {false, true}) {
      auto& result = results[limited];
      result.resize(n);
      run_in_threads(n, {}, [&](World& inner) {
        const auto world = make_metered(inner, limited ? LinkLimit{50e6, 1e-5} : LinkLimit{});
        Group group = Group::everyone(*world);
        std::vector<float> x = random_floats(world->rank(), count);
        const TrafficCount before = *world->sent();
        all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &a});
        const HostTopology topology = host_topology_of(world->place().host, world->rank());
        const MemberTraffic says =
            a.traffic({.n = n, .index = world->rank(), .count = count, .item = 4, .hosts = &topology});
        const TrafficCount sent = *world->sent();
        if (sent.messages - before.messages != says.messages || sent.bytes - before.bytes != says.bytes)
          fail("{}: rank {} sent {} messages with {} bytes and says {} with {}", a.name, world->rank(),
               sent.messages - before.messages, sent.bytes - before.bytes, says.messages, says.bytes);
        result[static_cast<std::size_t>(world->rank())] = x;
      });
    }
    EXPECT_TRUE(results[0] == results[1]) << a.name;
    EXPECT_TRUE(results[0][0] == results[0][3]) << a.name;
  }
}

}  // namespace
}  // namespace echelon
