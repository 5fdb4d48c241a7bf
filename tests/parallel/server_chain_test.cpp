// Replicated servers: no acknowledged update is lost when one loses its state.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;

TEST(ServerChain, TheModelIsTheSameIfAServerLosesItsState) {
  for (const char* servers : {"1", "2"}) {  // two workers: a sum of two has no order
    const std::string chain = fmt::format("servers = {}\nreplicas = 2\n", servers);
    const auto whole = simulate_system(2, {.system = gradients_to_servers(chain, "bsp"), .steps = 30});
    const auto killed =
        simulate_system(2, {.system = gradients_to_servers(chain + "kill_server = '0@20'", "bsp"), .steps = 30});
    EXPECT_TRUE(same_bits(whole[0].model, killed[0].model));
    EXPECT_TRUE(same_bits(whole[1].weights, killed[1].weights));
    EXPECT_LT(killed[0].sent.bytes, whole[0].sent.bytes);  // afterwards the first has nothing to pass on
  }
}

TEST(ServerChain, FourWorkersAndAllServers) {
  const std::string chain = "servers = 'all'\nreplicas = 2\n";
  const auto whole = simulate_system(4, {.system = gradients_to_servers(chain, "bsp"), .steps = 30});
  const auto killed =
      simulate_system(4, {.system = gradients_to_servers(chain + "kill_server = '2@7'", "bsp"), .steps = 30});
  double most = 0;
  for (std::size_t i = 0; i < whole[0].model.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(whole[0].model[i] - killed[0].model[i])));
  EXPECT_LT(most, 1e-5);  // contributions that came twice, or never, would show at once
  for (const SystemResult& r : killed) EXPECT_TRUE(same_bits(r.model, killed[0].model));
}

TEST(ServerChain, WithoutRoundsEveryContributionIsMergedOnce) {
  for (const char* sync : {"async", "delay"}) {
    SCOPED_TRACE(sync);
    const std::string system = gradients_to_servers("servers = 2\nreplicas = 3\nkill_server = '1@25'", sync);
    double updates = 0;
    std::vector<SystemResult> all(4);
    run_in_simulation(SimCluster::uniform(4, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
      all[static_cast<std::size_t>(world.rank())] =
          run_system(world, {.system = system, .steps = 40}, [&](Replica& replica) {
            for (const Figure& f : replica.figures())
              if (f.first == "updates") updates = f.second;
          });
    }).throw_if_failed();
    EXPECT_GT(all[0].accuracy, 0.9);
    EXPECT_GT(updates, 0);
  }
}

// Slices that are not pushed in a step are asked for all the same, also of the replica that is left.
TEST(ServerChain, SlicesThatWereNotChosenAreAnsweredToo) {
  const std::string some = "[order]\nname = 'magnitude'\nbytes = 64\nrate = 0.5\n";
  for (const char* kill : {"", "kill_server = '0@21'", "kill_server = '1@77'"}) {
    SCOPED_TRACE(kill);
    const std::string chain = fmt::format("servers = 2\nreplicas = 2\n{}", kill);
    const auto ranks =
        simulate_system(3, {.system = gradients_to_servers(chain, "delay") + some, .steps = 40, .batch = 30});
    for (const SystemResult& r : ranks) EXPECT_EQ(r.reached, 40);
    EXPECT_GT(ranks[0].accuracy, 0.9);
    EXPECT_TRUE(same_bits(ranks[0].model, ranks[2].model));
  }
}

TEST(ServerChain, ReplicasCostTheirTraffic) {
  const auto one = simulate_system(4, {.system = gradients_to_servers("servers = 1", "bsp"), .steps = 5});
  const auto two = simulate_system(4, {.system = gradients_to_servers("servers = 1\nreplicas = 2", "bsp"), .steps = 5});
  std::uint64_t more = 0;
  for (std::size_t r = 0; r < 4; ++r) more += two[r].sent.bytes - one[r].sent.bytes;
  EXPECT_EQ(more, 4 * (5 * (48 + 4 * one[0].model.size()) + 48));  // every push, and the end of the run
}

TEST(ServerChain, SaysWhatItNeeds) {
  Problems problems;
  composition_of(gradients_to_servers("kill_server = '0@20'", "bsp"), problems);
  EXPECT_NE(problems.text("").find("replicas to 2"), std::string::npos) << problems.text("");
  Problems few;
  check_composition(composition_of(gradients_to_servers("replicas = 4", "bsp"), few), {.workers = 3}, few);
  EXPECT_NE(few.text("").find("at most 3"), std::string::npos) << few.text("");
}

}  // namespace
}  // namespace echelon
