#include "collective/all_reduce.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "tests/support/says.h"
#include "world/launch.h"

namespace echelon {
namespace {

// What rank `r` brings: small whole numbers, so that sums are exact in any order.
template <typename T>
T brought(int r, std::size_t i) {
  return static_cast<T>(Stream({.seed = 11, .shard = static_cast<std::uint32_t>(r)}).below(1000, i)) -
         static_cast<T>(500);
}

template <typename T>
T expected(int n, std::size_t i, Reduction reduction) {
  T x = brought<T>(0, i);
  for (int r = 1; r < n; ++r) {
    const T y = brought<T>(r, i);
    x = reduction == Reduction::min ? std::min(x, y) : reduction == Reduction::max ? std::max(x, y) : x + y;
  }
  return reduction == Reduction::mean ? x / static_cast<T>(n) : x;
}

template <typename T>
void check(Group& group, const Algorithm* algorithm, std::size_t count, Reduction reduction, bool shared) {
  std::vector<T> plain(count);
  const std::span<T> data = shared ? group.allocate_span<T>(count) : std::span<T>(plain);
  for (std::size_t i = 0; i < count; ++i) data[i] = brought<T>(group.index(), i);
  all_reduce(group, data, reduction, {.algorithm = algorithm});
  for (std::size_t i = 0; i < count; ++i)
    if (data[i] != expected<T>(group.size(), i, reduction))
      fail("{} of {} {} with {} ranks: element {} of {} is {}, not {}", algorithm ? algorithm->name : "auto",
           to_string(element_type_of<T>()), to_string(reduction), group.size(), i, count, data[i],
           expected<T>(group.size(), i, reduction));
}

TEST(AllReduce, EveryAlgorithmGivesTheSumForAnySizeAndNumberOfRanks) {
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8})
    run_in_threads(n, {}, [](World& world) {
      Group group = Group::everyone(world);
      for (const Algorithm& a : all_reduce_algorithms()) {
        if (a.why_not && !a.why_not(group).empty()) continue;
        for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 17u, 1000u, 5003u, 70001u})
          for (const bool shared : {false, true}) check<float>(group, &a, count, Reduction::sum, shared);
      }
      for (const std::size_t count : {0u, 1u, 1000u, 70001u}) check<float>(group, nullptr, count, Reduction::sum, true);
    });
}

TEST(AllReduce, EveryTypeAndReduction) {
  run_in_threads(3, {}, [](World& world) {
    Group group = Group::everyone(world);
    for (const Algorithm& a : all_reduce_algorithms()) {
      if (a.why_not && !a.why_not(group).empty()) continue;
      for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max, Reduction::mean})
        for (const std::size_t count : {100u, 5003u}) {
          check<float>(group, &a, count, reduction, true);
          check<double>(group, &a, count, reduction, true);
          check<std::int32_t>(group, &a, count, reduction, false);
          check<std::int64_t>(group, &a, count, reduction, true);
        }
    }
  });
}

TEST(AllReduce, AllRanksGetTheSameBits) {
  run_in_threads(5, {}, [](World& world) {
    Group group = Group::everyone(world);
    for (const Algorithm& a : all_reduce_algorithms()) {
      if (a.why_not && !a.why_not(group).empty()) continue;
      std::vector<float> data(3001), first(data.size());
      const Stream stream = world.random("numbers");
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = stream.normal(i);
      all_reduce(group, std::span(data), Reduction::sum, {.algorithm = &a});
      first = data;
      broadcast(group, typed_span(std::span(first)), 0);
      if (std::memcmp(first.data(), data.data(), data.size() * sizeof(float)) != 0) fail("{} differs", a.name);
    }
  });
}

TEST(AllReduce, SubgroupsWorkSideBySide) {
  run_in_threads(7, {}, [](World& world) {
    Group everyone = Group::everyone(world);
    Group half = everyone.split(world.rank() % 2, -world.rank());
    if (half.size() != (world.rank() % 2 ? 3 : 4)) fail("the group has {} members", half.size());
    if (half.rank_of(half.index()) != world.rank()) fail("the group does not know its own rank");
    if (half.rank_of(0) < half.rank_of(1)) fail("the key does not order the members");
    Group again = half.split(0, 0);
    for (int round = 0; round < 20; ++round) {
      std::vector<std::int64_t> x(100, world.rank()), y(2000, 1), z(3000, 1);
      all_reduce(half, std::span(x));
      all_reduce(again, std::span(y), Reduction::sum, {.algorithm = &find_algorithm("ring")});
      all_reduce(everyone, std::span(z), Reduction::sum, {.algorithm = &find_algorithm("double-tree")});
      if (x[99] != (world.rank() % 2 ? 9 : 12) || y[1999] != half.size() || z[0] != 7) fail("{} {}", x[99], y[1999]);
    }
  });
}

TEST(AllReduce, AllRanksChooseAlike) {
  run_in_threads(4, {}, [](World& world) {
    Group group = Group::everyone(world);
    for (std::size_t bytes = 4; bytes < (1u << 26); bytes *= 4) {
      const Algorithm& mine = choose_all_reduce(group, bytes);
      std::vector<std::int64_t> least{&mine - all_reduce_algorithms().data()}, most = least;
      all_reduce(group, std::span(least), Reduction::min);
      all_reduce(group, std::span(most), Reduction::max);
      if (least != most) fail("ranks choose differently for {} bytes", bytes);
    }
  });
}

TEST(AllReduce, WhatCannotWorkIsRefused) {
  EXPECT_THROW(run_in_threads(2, {},
                              [](World& world) {
                                Group group = Group::everyone(world);
                                std::vector<float> x(3);
                                all_reduce(group, std::span(x), Reduction::sum,
                                           {.algorithm = &find_algorithm("native")});
                              }),
               BadInput);
}

}  // namespace
}  // namespace echelon
