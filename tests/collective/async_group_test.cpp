#include "collective/async_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "collective/all_reduce.h"
#include "collective/collectives.h"
#include "tests/support/allocations.h"
#include "tests/support/says.h"
#include "tests/world/messages.h"
#include "world/launch.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

Pending start_sum(AsyncGroup& async_group, std::span<float> x) {
  return async_group.start([x](Group& g) { all_reduce(g, x); });
}

void operations_run_in_order_beside_others(World& world) {
  Group group = Group::everyone(world);
  AsyncGroup async_group(group);
  constexpr std::size_t buckets = 200, numbers_each = 500;  // more than an async group holds at once
  std::vector<std::vector<float>> x(buckets, std::vector<float>(numbers_each));
  std::vector<Pending> pending;
  for (std::size_t b = 0; b < buckets; ++b) {
    for (float& v : x[b]) v = static_cast<float>(b + static_cast<std::size_t>(world.rank()));
    pending.push_back(async_group.start(
        [data = std::span(x[b])](Group& g) { all_reduce(g, data, Reduction::sum, {.name = "bucket"}); }));
    if (b % 10 == 0) {
      float one = 1;
      all_reduce(group, std::span(&one, 1));  // on the group's own channel, at the same time
      if (one != static_cast<float>(world.size())) fail("the group's own sum is {}", one);
    }
  }
  for (std::size_t b = 0; b < buckets; ++b) {
    if (!pending[b].wait(test::forever)) fail("bucket {} is late", b);
    const float want = static_cast<float>(world.size() * static_cast<int>(b) + world.size() * (world.size() - 1) / 2);
    if (x[b][7] != want) fail("bucket {} is {}, not {}", b, x[b][7], want);
  }
}

TEST(AsyncGroup, OperationsRunInOrderBesideOthers) {
  run_in_threads(3, {}, operations_run_in_order_beside_others);
  run_in_simulation(SimCluster::uniform(4, 5e-6, 1.25e9), {}, operations_run_in_order_beside_others).throw_if_failed();
}

TEST(AsyncGroup, AFailureIsRethrownByEveryLaterWait) {
  run_in_threads(2, {}, [](World& world) {
    Group group = Group::everyone(world);
    AsyncGroup async_group(group);
    std::vector<float> x(10);
    const Pending good = async_group.start([](Group&g) { barrier(g); }),
                  bad = async_group.start([](Group&) { fail("the bucket broke"); }), after = start_sum(async_group, x);
    if (!good.wait(test::forever)) fail("the first operation is late");
    for (const Pending& p : {bad, after, bad}) {
      std::string text;
      try {
        p.wait(test::forever);
      } catch (const Failure& e) {
        text = e.what();
      }
      if (text != "the bucket broke") fail("expected the failure, got '{}'", text);
    }
  });
}

TEST(AsyncGroup, ARankThatFailsMeanwhileDoesNotHang) {
  try {
    run_in_threads(3, {}, [](World& world) {
      Group group = Group::everyone(world);
      AsyncGroup async_group(group);
      std::vector<float> x(1000);
      const Pending p = start_sum(async_group, x);
      if (world.rank() == 1) {  // never submits its second operation
        p.wait(test::forever);
        fail("out of ideas");
      }
      start_sum(async_group, x).wait(test::forever);
    });
    FAIL();
  } catch (const Failure& e) {
    EXPECT_TRUE(test::says(e.what(), "out of ideas"));
  }
}

TEST(AsyncGroup, NothingIsAllocatedAfterTheFirstRound) {
  if (!test::allocations_are_counted()) GTEST_SKIP();
  run_in_threads(1, {}, [](World& world) {  // one rank: the count is of the whole process
    Group group = Group::everyone(world);
    AsyncGroup async_group(group);
    std::vector<float> x(1000);
    const auto round = [&] {
      for (int i = 0; i < 100; ++i) start_sum(async_group, x).wait(test::forever);
    };
    round();
    const auto before = test::allocations();
    round();
    if (test::allocations() != before) fail("{} allocations", test::allocations() - before);
  });
}

}  // namespace
}  // namespace echelon
