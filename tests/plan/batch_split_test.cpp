// One weird trick: the orders of work of its three schemes, before anything runs.

#include "plan/batch_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/check.h"
#include "plan/layout.h"

namespace echelon {
namespace {

// Stage 0 sends to all parts of stage 1 and gets a gradient back from each; so do later stages among them.
std::vector<StageMessage> everybody_to_everybody(const BatchSplitShape& shape, int buffers) {
  std::vector<StageMessage> messages;
  for (int stage = 0; stage + 1 < shape.stages; ++stage)
    for (int from = 0; from < (stage == 0 ? 1 : shape.ranks); ++from)
      for (int to = 0; to < shape.ranks; ++to) {
        messages.push_back({stage, stage + 1, Pass::forward, 1, from, to, buffers});
        messages.push_back({stage + 1, stage, Pass::backward, 1, to, from, buffers});
      }
  return messages;
}

PlanSpec weird_trick(int ranks, int stages, const std::string& scheme) {
  PlanSpec plan{.data = 1, .tensor = ranks};
  plan.layers = {{.match = "conv*", .split = "batch"}, {.match = "fc*", .split = "", .stage = stages - 1}};
  plan.scheme = scheme;
  return plan;
}

TEST(BatchSplit, EverySchemeCanBeRunWithItsBuffers) {
  for (const std::string& scheme : batch_schemes())
    for (const int ranks : {2, 3, 8})
      for (const int turns : {1, 2, 3, 4})
        for (const int stages : {2, 3, 4}) {
          const BatchSplitShape shape{ranks, ranks * turns, stages, scheme};
          const PlanLayout layout(weird_trick(ranks, stages, scheme), shape.micro_batches);
          const auto messages = everybody_to_everybody(shape, layout.message_buffers());
          const ScheduleCheck check = check_schedule(layout.checked_schedule(0), layout.checked_messages(messages));
          EXPECT_TRUE(check.problems.empty()) << scheme << ": " << check.problems.front();
        }
}

TEST(BatchSplit, SchemeAWithTooFewBuffersIsFoundToDeadlock) {
  const BatchSplitShape shape{2, 8, 2, "a"};
  const PlanLayout layout(weird_trick(2, 2, "a"), 8);
  EXPECT_EQ(layout.message_buffers(), 4);
  const auto messages = everybody_to_everybody(shape, 2);
  EXPECT_FALSE(check_schedule(layout.checked_schedule(0), layout.checked_messages(messages)).problems.empty());
}

TEST(BatchSplit, OnlySchemeATakesTheWholeBatchAtOnce) {
  for (const auto& [scheme, first, later] : {std::tuple("a", 4, 16), {"b", 4, 1}, {"c", 3, 1}}) {
    const BatchSplitShape shape{4, 16, 2, scheme};
    const PlanLayout layout(weird_trick(4, 2, scheme), 16);
    const auto check = check_schedule(layout.checked_schedule(0),
                                      layout.checked_messages(everybody_to_everybody(shape, layout.message_buffers())));
    ASSERT_TRUE(check.problems.empty());
    EXPECT_EQ(check.live[1][0], first) << scheme;
    EXPECT_EQ(check.live[1][static_cast<std::size_t>(layout.checked_stage(1, 1))], later) << scheme;
  }
}

TEST(BatchSplit, ATurnTakesOneMicroBatchOfEveryRank) {
  const std::vector<int> order = batch_split_order({4, 8, 2, "c"});
  EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
  const PlanLayout layout(weird_trick(4, 2, "c"), 8);
  for (int turn = 0; turn < 2; ++turn) {
    std::set<int> ranks;
    for (int i = 0; i < 4; ++i) ranks.insert(layout.rank_of(0, layout.line_of(order[std::size_t(4 * turn + i)]), 0, 0));
    EXPECT_EQ(ranks.size(), 4u);
  }
}

TEST(BatchSplit, EveryRankHasTheFirstLayersForItsOwnMicroBatchesAndAPartOfTheOthersForAll) {
  PlanSpec plan = weird_trick(4, 2, "b");
  plan.data = 2;
  const PlanLayout layout(plan, 16);
  for (int rank = 0; rank < 8; ++rank) {
    const auto hosted = layout.hosted(rank);
    ASSERT_EQ(hosted.size(), 2u);
    EXPECT_EQ(hosted[0].shards.first, 2 * rank);
    EXPECT_EQ(hosted[0].shards.count(), 2);
    EXPECT_EQ(hosted[1].part, rank % 4);
    EXPECT_EQ(hosted[1].shards.first, rank / 4 * 8);
    EXPECT_EQ(hosted[1].shards.count(), 8);
  }
  EXPECT_EQ(layout.ranks_of_stage(0, 0).size(), 8u);
  EXPECT_EQ(layout.ranks_of_stage(1, 3), (std::vector<int>{3, 7}));
}

}  // namespace
}  // namespace echelon
