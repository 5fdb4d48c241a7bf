// Tasks that take turns with one thing.

#include "world/os/mutex.h"

#include <gtest/gtest.h>

#include "world/launch.h"

namespace echelon {
namespace {

TEST(Mutex, AreTakenOneAfterTheOther) {
  constexpr int ranks = 4, times = 20'000;
  Mutex mutex;
  int count = 0;  // no atomic: increments that overlap are lost
  run_in_threads(ranks, {}, [&](World&) {
    for (int i = 0; i < times; ++i) mutex.take([&] { ++count; });
  });
  EXPECT_EQ(count, ranks * times);
}

TEST(Mutex, AreLeftToWhoHasThem) {
  Mutex mutex;
  int mine = 0, others = 0;
  mutex.take([&] {
    run_in_threads(2, {}, [&](World& world) {  // the first rank is this thread or another: only the second is asked
      if (world.rank() == 1) mutex.take_if_free([&] { ++others; });
    });
  });
  mutex.take_if_free([&] { ++mine; });
  EXPECT_EQ(others, 0);
  EXPECT_EQ(mine, 1);
}

TEST(Mutex, AreGivenBackByWhoThrows) {
  Mutex mutex;
  EXPECT_THROW(mutex.take([] { throw 1; }), int);
  bool taken = false;
  mutex.take_if_free([&] { taken = true; });
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace echelon
