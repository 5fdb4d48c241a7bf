#include "collective/wait_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/all_reduce.h"
#include "collective/collectives.h"
#include "collective/group_state.h"
#include "tests/support/allocations.h"
#include "tests/support/says.h"
#include "world/launch.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

SimReport simulate_waits(int ranks, const Program& program) {
  return run_in_simulation(SimCluster::uniform(ranks, 5e-6, 1.25e9), {}, program);
}

TEST(WaitPolicy, ALateRankIsNamedAtGrowingIntervalsWithWhatItIsDoing) {
  std::vector<std::string> notices;
  simulate_waits(4, [&](World& world) {
    Group group = Group::everyone(world, {.notice = [&](const WaitNotice& late) {
                                    if (world.rank() == 2) notices.push_back(late.text);
                                  }});
    std::vector<float> x(100);
    for (int i = 0; i < 5; ++i) all_reduce(group, std::span(x));
    if (world.rank() == 3) {
      world.set_status("backward of conv2");
      world.sleep(20);
    }
    all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &find_algorithm("owners"), .name = "bucket 7"});
    const double waited = world.rank() == 3 ? 20 : group.wait_policy().waited().at(3);
    if (waited < 19 || waited > 21) fail("{} s waited for rank 3", waited);
  }).throw_if_failed();
  ASSERT_GE(notices.size(), 2u);
  EXPECT_EQ(notices[0], "waiting 2.0 s for rank 3: all-reduce bucket 7; rank 3 is in backward of conv2");
  EXPECT_EQ(notices[1], "waiting 4.0 s for rank 3: all-reduce bucket 7; rank 3 is in backward of conv2");
  EXPECT_LE(notices.size(), 5u);
}

TEST(WaitPolicy, AStageOfASplitModelIsNamedByWhatItComputes) {
  const auto notice = [](WaitPolicy::NameOf name_of) {
    std::vector<std::string> notices;
    simulate_waits(3, [&](World& world) {
      constexpr Channel channel = 77;
      std::array<std::byte, 4> bytes{};
      if (world.rank() == 2) {
        world.set_status("backward of stage 2, micro-batch 4");
        world.sleep(3.5);
        world.send(1, channel, {}, bytes).wait(world.now() + 10);
      }
      if (world.rank() != 1) return;
      WaitPolicy policy(world, {.notice = [&](const WaitNotice& late) { notices.push_back(late.text); }});
      Work work = world.receive(2, channel, {}, bytes);
      policy.begin({}, "stage 2, micro-batch 5", name_of);
      policy.wait(work, 2);
      policy.end();
    }).throw_if_failed();
    return notices.at(0);
  };
  const std::string does = "; rank 2 is in backward of stage 2, micro-batch 4";
  EXPECT_EQ(notice(WaitPolicy::NameOf::peer), "waiting 2.0 s for stage 2, micro-batch 5" + does);
  const std::string of_operation = notice(WaitPolicy::NameOf::operation);
  EXPECT_TRUE(of_operation.starts_with("waiting 2.0 s for rank 2: ")) << of_operation;
}

TEST(WaitPolicy, WhatIsUsuallySlowIsNotCalledLate) {
  int notices = 0;
  simulate_waits(2, [&](World& world) {
    Group group = Group::everyone(world, {.notice = [&](const WaitNotice&) { ++notices; }});
    for (int i = 0; i < 10; ++i) {
      if (world.rank() == 1) world.sleep(i == 0 ? 1.5 : 4);  // learns from what took a little longer
      barrier(group);
    }
  }).throw_if_failed();
  EXPECT_EQ(notices, 0);
}

TEST(WaitPolicy, TheLimitEndsAWaitNamingWhomAndWhat) {
  const SimReport report = simulate_waits(2, [&](World& world) {
    Group group = Group::everyone(world, {.limit = 10});
    if (world.rank() == 1) {
      world.set_status("reading the data");
      world.sleep(100);
    }
    barrier(group);
  });
  ASSERT_FALSE(report.ok());
  EXPECT_THROW(std::rethrow_exception(report.failures[0].error), TooLate);
  EXPECT_TRUE(test::says(report.failures[0].text, "rank 0 aborts: waiting 10.0 s for rank 1: barrier 1"));
  EXPECT_TRUE(test::says(report.failures[0].text, "rank 1 is in reading the data; the limit is 10 s"));
}

TEST(WaitPolicy, SharedMemoryKnowsTheLatecomerToo) {
  std::atomic<bool> noticed = false;
  run_in_threads(3, {}, [&](World& world) {
    const auto notice = [&](const WaitNotice& late) {
      const bool right = late.text.ends_with("for rank 2: all-reduce bucket 1; rank 2 is in forward of fc1");
      if (world.rank() == 0 && late.names(2) && right) noticed = true;
    };
    Group group = Group::everyone(world, {.floor = 0.02, .factor = 1, .notice = notice});
    const auto x = group.allocate_span<float>(10000);
    if (world.rank() == 2) {
      world.set_status("forward of fc1");
      for (const double end = world.now() + 100; !noticed && world.now() < end;) world.sleep(0.001);
    }
    all_reduce(group, x, Reduction::sum, {.algorithm = &find_algorithm("direct"), .name = "bucket 1"});
    if (world.rank() == 0 && group.wait_policy().waited().at(2) < 0.02) fail("nobody was blamed");
  });
  EXPECT_TRUE(noticed);
}

// --- ranks that disagree
// ----------------------------------------------------------------------------------------------

using Deed = void (*)(Group&);

std::string disagreement(int ranks, Deed usual, Deed other, bool threads) {
  const Program program = [&](World& world) {
    Group group = Group::everyone(world, {.limit = 20});
    barrier(group);
    (world.rank() == 1 ? other : usual)(group);
  };
  try {
    if (threads)
      run_in_threads(ranks, {}, program);
    else
      simulate_waits(ranks, program).throw_if_failed();
  } catch (const Error& e) {
    return e.what();
  }
  return "nobody noticed";
}

template <typename T, std::size_t count>
void sum_of(Group& group) {
  std::vector<T> x(count);
  all_reduce(group, std::span(x), Reduction::sum, {.algorithm = &find_algorithm("ring")});
}
void any_sum(Group& group) {
  std::vector<float> x(10000);
  all_reduce(group, std::span(x), Reduction::sum,
             {.algorithm = &find_algorithm(group.state().control ? "direct" : "ring")});
}
void any_max(Group& group) {
  std::vector<float> x(10000);
  all_reduce(group, std::span(x), Reduction::max,
             {.algorithm = &find_algorithm(group.state().control ? "direct" : "ring")});
}
void gather_all(Group& group) {
  std::vector<float> x(10000), all(10000 * static_cast<std::size_t>(group.size()));
  all_gather(group, const_typed_span(std::span(x)), typed_span(std::span(all)));
}
void meet(Group& group) { barrier(group); }

TEST(Disagreement, IsDescribedInEveryWorld) {
  for (const bool threads : {true, false}) {
    const std::string size = disagreement(3, sum_of<float, 3000>, sum_of<float, 3003>, threads);
    EXPECT_TRUE(test::says(size, "all-reduce 2")) << threads;
    const std::string type = disagreement(3, sum_of<float, 3000>, sum_of<std::int32_t, 3000>, threads);
    EXPECT_TRUE(test::says(type, "float32"));
    EXPECT_TRUE(test::says(type, "int32"));
    const std::string order = disagreement(3, any_sum, gather_all, threads);
    EXPECT_TRUE(test::says(order, "all-gather 2"));
    EXPECT_TRUE(test::says(order, "all-reduce 2"));
    const std::string reduction = disagreement(3, any_sum, any_max, threads);
    EXPECT_TRUE(test::says(reduction, "(max)"));
    const std::string kind = disagreement(3, any_sum, meet, threads);
    EXPECT_TRUE(test::says(kind, "barrier 2"));
  }
}

// A rank that waits for messages and one that waits at a barrier would never meet: they look what the other is at.
TEST(Disagreement, OfMessagesAndSharedMemoryIsFoundOut) {
  const std::string text = disagreement(2, any_sum, sum_of<float, 3000>, true);
  EXPECT_TRUE(test::says(text, "with 3000"));
  EXPECT_TRUE(test::says(text, "with 10000"));
}

TEST(AllReduce, AllocatesNothingAfterTheFirstRound) {
  if (!test::allocations_are_counted()) GTEST_SKIP();
  std::int64_t least = 1'000'000;
  run_in_threads(3, {}, [&](World& world) {
    Group group = Group::everyone(world);
    const auto shared = group.allocate_span<float>(20000);
    std::vector<float> own(20000);
    const auto round = [&] {
      for (const Algorithm& a : all_reduce_algorithms()) {
        if (a.why_not && !a.why_not(group).empty()) continue;
        for (int i = 0; i < 3; ++i)
          for (const std::size_t count : {10u, 20000u}) {
            all_reduce(group, shared.first(count), Reduction::sum, {.algorithm = &a});
            all_reduce(group, std::span(own).first(count), Reduction::sum, {.algorithm = &a});
            all_reduce(group, std::span(own).first(count));
          }
      }
    };
    for (int i = 0; i < 3; ++i) round();
    // The world's pools grow to the most that was ever under way at once, which on a busy machine takes a few rounds:
    // it is enough that a round gets by without.
    for (int i = 0; i < 50 && least > 0; ++i) {
      barrier(group);
      const std::int64_t before = test::allocations();
      barrier(group);
      round();
      barrier(group);
      if (world.rank() == 0) least = std::min(least, test::allocations() - before);
      barrier(group);
    }
  });
  EXPECT_EQ(least, 0);
}

}  // namespace
}  // namespace echelon
