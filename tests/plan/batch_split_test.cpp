// One weird trick: the orders of work of its three schemes, before anything runs.

#include "plan/batch_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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

// Which segment of which pass a turn is at, slot by slot: no two tasks of one turn follow each other without the first
// layers of another turn in between, while there are any.
TEST(BatchSplit, PipelinedTurnsAreASegmentApart) {
  BatchSplitShape shape{4, 48, 2, "pipelined"};
  shape.segments = {{1, 1}, {3, 2}};
  const PipelineSchedule schedule = batch_split_schedule(shape);
  PlanSpec plan = weird_trick(4, 2, "pipelined");
  plan.segments = shape.segments;
  const PlanLayout layout(plan, shape.micro_batches);
  const auto messages = everybody_to_everybody(shape, layout.message_buffers());
  const ScheduleCheck check = check_schedule(layout.checked_schedule(0), layout.checked_messages(messages));
  EXPECT_TRUE(check.problems.empty()) << check.problems.front();
  EXPECT_EQ(layout.buffers_inside_stage(), 12);
  for (const auto& list : schedule.ranks) {
    int first_layers = 0;
    std::map<std::pair<int, int>, int> sent_at;  // by micro-batch and segments behind it: passes of the first layers
    for (const StageTask& task : list) {
      if (task.stage == 0) {
        ++first_layers;
        continue;
      }
      const int behind = task.pass == Pass::forward ? task.segment : 2 + task.segment;  // the loss is in between
      if (const auto it = sent_at.find({task.micro_batch, behind - 1}); it != sent_at.end()) {
        EXPECT_GT(first_layers, it->second) << to_string(task);
      }
      sent_at[{task.micro_batch, behind}] = first_layers;
    }
    EXPECT_EQ(first_layers, 24);
  }
}

TEST(BatchSplit, ASegmentThatIsMissingOrTooEarlyIsFound) {
  PlanSpec plan = weird_trick(2, 2, "pipelined");
  plan.segments = {{1, 1}, {2, 2}};
  const PlanLayout layout(plan, 4);
  const auto messages = layout.checked_messages(everybody_to_everybody({2, 4, 2, "pipelined"}, 2));
  const PipelineSchedule good = layout.checked_schedule(0);
  ASSERT_TRUE(check_schedule(good, messages).problems.empty());
  for (std::size_t i = 0; i < good.ranks[0].size(); ++i) {
    PipelineSchedule bad = good;
    bad.ranks[0].erase(bad.ranks[0].begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(check_schedule(bad, messages).problems.empty()) << "without " << to_string(good.ranks[0][i]);
    if (good.ranks[0][i].segment != 1) continue;
    bad = good;
    const auto before = std::ranges::find(
        bad.ranks[0], StageTask{good.ranks[0][i].pass, good.ranks[0][i].stage, good.ranks[0][i].micro_batch, 0});
    std::swap(*before, bad.ranks[0][i]);
    EXPECT_FALSE(check_schedule(bad, messages).problems.empty()) << "early " << to_string(good.ranks[0][i]);
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
