// Every wait ends: whoever fails while others wait is named by them.

#include <gtest/gtest.h>

#include <new>

#include "tests/parallel/systems.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

using namespace test;

std::string server(const std::string& settings, const std::string& sync) {
  return fmt::format("[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n{}\n[sync]\nname = '{}'\n", settings,
                     sync);
}

// After the last round all wait for each other; nobody ends the program because one does not come.
TEST(Waits, ARankThatFailsAfterTheLastRoundIsNamedByTheOthers) {
  std::vector<std::string> said(3);
  run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) {
    try {
      run_system(world, {.system = server("", "async"), .batch = 30}, [&](Replica&) {
        if (world.rank() == 0) throw std::bad_alloc();
      });
    } catch (const PeerLost& lost) {
      said[static_cast<std::size_t>(world.rank())] = lost.what();
      throw;
    }
  });
  EXPECT_EQ(said[0], "");
  for (const std::size_t r : {1u, 2u}) EXPECT_TRUE(says(said[r], "rank 0 was lost")) << r;
}

// Portions of its gradient that never become ready are not waited for.
TEST(Waits, ARankThatFailsInTheMiddleOfAStepEndsAtOnce) {
  SystemJob job{.system = "[rule]\nname = 'grad_mean'\n", .batch = 30, .shards = 2};
  job.prepare = [](Replica& replica, Rank rank) {
    if (rank == 1) replica.trainer().ask_before_shards([]() -> bool { fail("the lights went out"); });
  };
  const SimReport report =
      run_in_simulation(SimCluster::uniform(3, 1e-5, 1e9), {.seed = 7}, [&](World& world) { run_system(world, job); });
  ASSERT_EQ(report.failures.size(), 3u);
  for (const SimFailure& f : report.failures) {
    EXPECT_TRUE(says(f.text, f.rank == 1 ? "it stopped while an exchange was under way" : "rank 1 was lost"));
    EXPECT_LT(f.at, 10) << f.rank;
  }
}

}  // namespace
}  // namespace echelon
