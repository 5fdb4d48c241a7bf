#include "parallel/step/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace echelon {
namespace {

// Ten layers of 1,000 numbers; the last layer's gradient is there first.
std::vector<ReadyPiece> ten_layers(double seconds_each) {
  std::vector<ReadyPiece> pieces;
  for (std::size_t i = 0; i < 10; ++i)
    pieces.push_back({i * 1000, (i + 1) * 1000, static_cast<double>(10 - i) * seconds_each});
  return pieces;
}

TEST(Buckets, CoverEveryNumberOnceInTheOrderInWhichTheyBecomeReady) {
  for (std::size_t bytes : {1u, 4000u, 9000u, 1000000u}) {
    const auto buckets = fuse_pieces(ten_layers(1), bytes);
    std::vector<int> covered(10000);
    for (const Bucket& b : buckets)
      for (std::size_t i = b.begin; i < b.end; ++i) ++covered[i];
    EXPECT_TRUE(std::ranges::all_of(covered, [](int n) { return n == 1; })) << bytes;
    EXPECT_EQ(buckets.front().end, 10000u);
    for (std::size_t b = 0; b + 1 < buckets.size(); ++b)
      EXPECT_GE((buckets[b].end - buckets[b].begin) * 4, std::min<std::size_t>(bytes, 40000));
  }
}

TEST(Buckets, AreOneWhenAMessageCostsMoreThanTheComputation) {
  EXPECT_EQ(choose_buckets(ten_layers(1e-6), [](std::size_t) { return 1.0; }).size(), 1u);
}

TEST(Buckets, AreManyWhenTheLinkIsTheBottleneckAndAMessageIsCheap) {
  const auto cost = [](std::size_t bytes) { return 1e-9 + static_cast<double>(bytes) * 1e-4; };
  EXPECT_EQ(choose_buckets(ten_layers(1), cost).size(), 10u);
}

TEST(Buckets, NoOtherSizeWouldFinishEarlier) {
  for (double latency : {0.0, 0.1, 1.0, 3.0}) {
    const auto cost = [&](std::size_t bytes) { return latency + static_cast<double>(bytes) / 8000; };
    const auto pieces = ten_layers(1);
    const double chosen = finish_time(choose_buckets(pieces, cost), pieces, cost);
    for (std::size_t bytes = 1; bytes < 100000; bytes *= 2)
      EXPECT_LE(chosen, finish_time(fuse_pieces(pieces, bytes), pieces, cost));
  }
}

}  // namespace
}  // namespace echelon
