#include "parallel/step/bucket_pipeline.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "collective/collectives.h"
#include "tests/support/says.h"
#include "tests/world/messages.h"
#include "world/launch.h"

namespace echelon {
namespace {

using test::says;
using Log = std::vector<std::string>;

TEST(BucketPipeline, ExchangesBucketsInOrderInWhateverOrderTheyBecomeComplete) {
  std::vector<Log> logs(2);
  run_in_threads(2, {}, [&](World& world) {
    Log& log = logs[static_cast<std::size_t>(world.rank())];
    Group group = Group::everyone(world);
    BucketPipeline pipeline(group, {.exchange = [&](Group& g, std::uint64_t step, std::size_t bucket) {
                              barrier(g);
                              log.push_back(fmt::format("{}:{}", step, bucket));
                            }});
    pipeline.set_buckets(3);
    pipeline.begin();
    for (const std::size_t b : {2u, 0u, 1u}) pipeline.complete(b);
    pipeline.wait(1);
    EXPECT_GE(log.size(), 2u);
    pipeline.finish();
    pipeline.set_buckets(1);  // for the steps that follow
    pipeline.begin();
    pipeline.complete(0);
    pipeline.finish();
  });
  EXPECT_EQ(logs[0], (Log{"1:0", "1:1", "1:2", "2:0"}));
  EXPECT_EQ(logs[1], logs[0]);
}

TEST(BucketPipeline, ConcludesAStepOnlyAfterBackwardAndTakesTheNextOneMeanwhile) {
  run_in_threads(2, {}, [&](World& world) {
    Log log;
    Group group = Group::everyone(world);
    const auto may_conclude = world.make_event();
    BucketPipeline pipeline(
        group, {.exchange = [&](Group&, std::uint64_t s, std::size_t b) { log.push_back(fmt::format("{}:{}", s, b)); },
                .conclude =
                    [&](Group&, std::uint64_t s) {
                      may_conclude->wait(1, test::forever);
                      log.push_back(fmt::format("end of {}", s));
                    }});
    pipeline.set_buckets(2);
    pipeline.begin();
    pipeline.complete(0), pipeline.complete(1);
    pipeline.wait(1);
    EXPECT_EQ(log, (Log{"1:0", "1:1"}));
    pipeline.end_backward();
    pipeline.begin();  // before the first step is concluded
    pipeline.complete(0), pipeline.complete(1);
    pipeline.end_backward();
    may_conclude->notify();
    pipeline.finish();
    EXPECT_EQ(log, (Log{"1:0", "1:1", "end of 1", "2:0", "2:1", "end of 2"}));
  });
}

TEST(BucketPipeline, WhatGoesWrongInTheTaskIsRethrownAtOnceAndEverAfter) {
  run_in_threads(2, {}, [&](World& world) {
    int exchanged = 0;
    Group group = Group::everyone(world);
    BucketPipeline pipeline(group, {.exchange = [&](Group&, std::uint64_t, std::size_t b) {
                              if (b == 1) fail("the second bucket is broken");
                              ++exchanged;
                            }});
    pipeline.set_buckets(3);
    for (int step = 0; step < 2; ++step) {
      pipeline.begin();
      for (const std::size_t b : {0u, 1u, 2u}) pipeline.complete(b);
      EXPECT_THROW(pipeline.wait(2), Failure);
      EXPECT_THROW(pipeline.finish(), Failure);
    }
    EXPECT_EQ(exchanged, 1);
  });
}

TEST(BucketPipeline, EndsInTheMiddleOfAStep) {
  run_in_threads(2, {}, [&](World& world) {
    int exchanged = 0;
    Group group = Group::everyone(world);
    {
      BucketPipeline pipeline(group, {.exchange = [&](Group&, std::uint64_t, std::size_t) { ++exchanged; },
                                      .conclude = [&](Group&, std::uint64_t) { exchanged = 100; }});
      pipeline.set_buckets(2);
      pipeline.begin();
      pipeline.complete(0);
      pipeline.wait(0);
    }
    EXPECT_EQ(exchanged, 1);  // the second bucket never became complete
  });
}

TEST(BucketPipeline, ARankThatFailsInTheMiddleOfAStepEndsItForTheOthers) {
  std::vector<std::string> said(2);
  EXPECT_THROW(run_in_threads(2, {},
                              [&](World& world) {
                                try {
                                  Group group = Group::everyone(world);
                                  BucketPipeline pipeline(
                                      group, {.exchange = [](Group& g, std::uint64_t, std::size_t) { barrier(g); }});
                                  pipeline.set_buckets(1);
                                  pipeline.begin();
                                  pipeline.complete(0);
                                  if (world.rank() == 1) fail("out of order");
                                  pipeline.finish();
                                  pipeline.begin();  // rank 1 takes no part in it
                                  pipeline.complete(0);
                                  pipeline.finish();
                                } catch (const Failure& failure) {
                                  said[static_cast<std::size_t>(world.rank())] = failure.what();
                                  throw;
                                }
                              }),
               RankFailed);
  EXPECT_TRUE(says(said[0], "rank 1 was lost")) << said[0];
}

}  // namespace
}  // namespace echelon
