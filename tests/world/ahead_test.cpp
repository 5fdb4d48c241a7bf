#include "world/os/ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace echelon {
namespace {

TEST(Ahead, HandsOutEveryNumberWhateverDepthAndThreads) {
  for (const int depth : {0, 1, 2, 7})
    for (const int threads : {1, 2, 5}) {
      std::vector<std::uint64_t> ring(Ahead::slots(depth));
      Ahead ahead({.name = "test", .depth = depth, .threads = threads, .first = 3},
                  [&](std::uint64_t number, std::size_t slot) { ring[slot] = number * number; });
      for (std::uint64_t n = 3; n < 300; ++n) ASSERT_EQ(ring[ahead.take(n)], n * n) << depth << " " << threads;
    }
}

TEST(Ahead, JumpsWhereItIsTold) {
  std::vector<std::uint64_t> ring(Ahead::slots(4));
  Ahead ahead({.name = "test", .depth = 4, .threads = 2, .first = 0},
              [&](std::uint64_t number, std::size_t slot) { ring[slot] = number; });
  for (const std::uint64_t n : {0, 1, 9, 10, 2, 2, 2, 1000, 0, 1, 2}) ASSERT_EQ(ring[ahead.take(n)], n);
}

// What the consumer holds is not touched, and nothing is made further ahead than the depth.
TEST(Ahead, StaysWithinItsDepth) {
  constexpr int depth = 3;
  std::vector<std::atomic<std::uint64_t>> ring(Ahead::slots(depth));
  std::atomic<std::uint64_t> largest = 0;
  Ahead ahead({.name = "test", .depth = depth, .threads = 3, .first = 0}, [&](std::uint64_t number, std::size_t slot) {
    ring[slot] = number;
    std::uint64_t seen = largest;
    while (seen < number && !largest.compare_exchange_weak(seen, number)) {
    }
  });
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const std::size_t slot = ahead.take(n);
    ASSERT_LE(largest, n + depth);
    ASSERT_EQ(ring[slot], n);
  }
}

TEST(Ahead, ParksErrorsAndTriesAgain) {
  for (const int depth : {0, 3}) {
    std::atomic<int> failures = 1;
    std::vector<std::uint64_t> ring(Ahead::slots(depth));
    Ahead ahead({.name = "test", .depth = depth, .threads = 1, .first = 0},
                [&](std::uint64_t number, std::size_t slot) {
                  if (number == 5 && failures-- > 0) throw std::runtime_error("five");
                  ring[slot] = number;
                });
    for (std::uint64_t n = 0; n < 5; ++n) ASSERT_EQ(ring[ahead.take(n)], n);
    EXPECT_THROW(ahead.take(5), std::runtime_error);
    for (std::uint64_t n = 5; n < 20; ++n) ASSERT_EQ(ring[ahead.take(n)], n);
  }
}

TEST(Ahead, EndsWhileItemsAreWaiting) {
  for (int i = 0; i < 50; ++i)
    Ahead({.name = "test", .depth = 4, .threads = 2, .first = 0}, [](std::uint64_t, std::size_t) {});
}

}  // namespace
}  // namespace echelon
