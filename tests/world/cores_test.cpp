#include "world/os/cores.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace echelon {
namespace {

TEST(Cores, EveryCoreWorksOnceEachTime) {
  Cores cores(3);
  std::array<int, 3> times{};
  for (int i = 0; i < 100; ++i) cores.run([&](int core) { ++times[static_cast<std::size_t>(core)]; });
  EXPECT_EQ(times, (std::array<int, 3>{100, 100, 100}));
}

TEST(Cores, NobodyPassesABarrierBeforeTheLastHasArrived) {
  Cores cores(4);
  std::vector<int> written(4, 0);
  std::atomic<int> wrong{0};
  cores.run([&](int core) {
    for (int round = 1; round <= 200; ++round) {
      written[static_cast<std::size_t>(core)] = round;
      cores.barrier();
      if (std::accumulate(written.begin(), written.end(), 0) != 4 * round) ++wrong;
      cores.barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Cores, AFailureOnOneCoreReachesTheCallerAndFreesTheOthers) {
  Cores cores(3);
  for (int culprit = 0; culprit < 3; ++culprit) {
    EXPECT_THROW(cores.run([&](int core) {
      if (core == culprit) throw std::runtime_error("broken");
      cores.barrier();  // would wait for ever
    }),
                 std::runtime_error);
  }
  int done = 0;
  cores.run([&](int core) { done += core == 0; });  // and the team still works
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace echelon
