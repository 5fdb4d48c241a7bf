#include "plan/schedule.h"

#include <gtest/gtest.h>

#include "plan/check.h"
#include "plan/replay.h"

namespace echelon {
namespace {

// Every schedule of every shape that it takes.
template <typename Visit>
void for_each_schedule(const Visit& visit) {
  for (const ScheduleKind& kind : schedule_kinds())
    for (int ranks = 2; ranks <= 8; ++ranks)
      for (int micro_batches = 1; micro_batches <= 17; ++micro_batches)
        for (int chunks = 1; chunks <= 3; ++chunks) {
          const ScheduleShape shape{ranks, micro_batches, chunks};
          if (kind.refusal(shape).empty()) visit(kind, shape, kind.make(shape));
        }
}

std::vector<StageCost> costs_of(const PipelineSchedule& s, const StageCost& cost) {
  return std::vector<StageCost>(static_cast<std::size_t>(s.stages), cost);
}

double bubble_of(const PipelineSchedule& s) {
  const StageCost cost = s.splits_weights ? StageCost{1, 1, 1} : StageCost{1, 2, 0};
  return replay(s, chain_messages(s.stages), {.stages = costs_of(s, cost)}).bubble();
}

TEST(Schedules, CanBeRunInEveryShapeThatTheyTake) {
  int shapes = 0;
  for_each_schedule([&](const ScheduleKind& kind, const ScheduleShape& shape, const PipelineSchedule& s) {
    ++shapes;
    EXPECT_EQ(s.stages, shape.ranks * shape.chunks);
    EXPECT_EQ(s.ranks_count(), shape.ranks);
    const ScheduleCheck check = check_schedule(s, chain_messages(s.stages));
    EXPECT_TRUE(check.problems.empty()) << kind.name << ", " << shape.ranks << " ranks, " << shape.micro_batches
                                        << " micro-batches, " << shape.chunks
                                        << " chunks: " << (check.problems.empty() ? "" : check.problems.front());
  });
  EXPECT_GT(shapes, 400);
}

// Values also skip stages (residual connections), and gradients of shared weights go from the last to the first.
TEST(Schedules, CanBeRunWithMessagesBetweenAnyStages) {
  for_each_schedule([&](const ScheduleKind& kind, const ScheduleShape& shape, const PipelineSchedule& s) {
    std::vector<StageMessage> messages = chain_messages(s.stages);
    for (int stage = 2; stage < s.stages; ++stage) {
      messages.push_back({stage - 2, stage, Pass::forward});
      messages.push_back({stage, stage - 2, Pass::backward});
    }
    messages.push_back({0, s.stages - 1, Pass::forward});
    messages.push_back({s.stages - 1, 0, Pass::backward});
    EXPECT_TRUE(check_schedule(s, messages).problems.empty())
        << kind.name << ", " << shape.ranks << " ranks, " << shape.micro_batches << " micro-batches";
  });
}

TEST(Schedules, HaveTheBubbleOfTheirFormula) {
  for (const int p : {2, 4, 8})
    for (const int m : {8, 16, 32}) {
      for (const char* name : {"gpipe", "1f1b", "zero_bubble"}) {
        const ScheduleKind& kind = *find_schedule(name);
        EXPECT_NEAR(bubble_of(kind.make({p, m})), kind.bubble({p, m}), 1e-9) << name << ", p " << p << ", m " << m;
      }
      const ScheduleKind& zero = *find_schedule("zero_bubble");
      EXPECT_NEAR(bubble_of(zero.make({p, m, 2})), zero.bubble({p, m, 2}), 1e-9) << p << ", " << m;
      const ScheduleKind& interleaved = *find_schedule("interleaved");
      EXPECT_NEAR(bubble_of(interleaved.make({p, m, 2})), interleaved.bubble({p, m, 2}), 0.002) << p << ", " << m;
    }
  const ScheduleKind& dual = *find_schedule("dualpipe");
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) EXPECT_NEAR(bubble_of(dual.make({p, m})), dual.bubble({p, m}), 1e-9);
  const ScheduleKind& both = *find_schedule("bidirectional");
  for (const int p : {2, 4, 8}) EXPECT_LE(bubble_of(both.make({p, p})), bubble_of(find_schedule("1f1b")->make({p, p})));
}

// In units of time, not as a share: down the ranks and back up leaves a sixth, with the memory of 1f1b's first rank.
TEST(Schedules, ZeroBubbleLeavesAThirdOfTheIdleTimeAndASixthWithTwoChunks) {
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) {
      const auto idle = [&](const char* name, int chunks, const StageCost& cost) {
        const PipelineSchedule s = find_schedule(name)->make({p, m, chunks});
        const Replay r = replay(s, chain_messages(s.stages), {.stages = costs_of(s, cost)});
        return r.seconds - r.busy(0);
      };
      const double of_1f1b = idle("1f1b", 1, {2, 4, 0});
      EXPECT_LE(3 * idle("zero_bubble", 1, {2, 2, 2}), of_1f1b) << p << ", " << m;
      EXPECT_LE(6 * idle("zero_bubble", 2, {1, 1, 1}), of_1f1b) << p << ", " << m;
      const PipelineSchedule s = find_schedule("zero_bubble")->make({p, m, 2});
      // A stage is half as large as one of 1f1b, of which p are alive on the first rank.
      std::vector<double> half(static_cast<std::size_t>(2 * p), 0.5);
      EXPECT_TRUE(
          check_schedule(s, chain_messages(2 * p), {.kept_bytes = half, .most_bytes = p + 0.01}).problems.empty());
    }
}

TEST(Schedules, ZeroBubbleWithTwoChunksGoesDownTheRanksAndBackUp) {
  const PipelineSchedule s = find_schedule("zero_bubble")->make({3, 4, 2});
  for (int stage = 0; stage < 6; ++stage) {
    EXPECT_EQ(rank_of(s, stage, 1), stage < 3 ? stage : 5 - stage);
    EXPECT_EQ(position_of(*find_schedule("zero_bubble"), stage, 3), stage < 3 ? stage : 5 - stage);
    EXPECT_EQ(position_of(*find_schedule("interleaved"), stage, 3), stage % 3);
  }
}

TEST(Schedules, KeepAsManyMicroBatchesAliveAsTheyPromise) {
  constexpr int p = 4, m = 12;
  const auto live = [&](const char* name, int rank, int stage = -1) {
    const PipelineSchedule s = find_schedule(name)->make({p, m});
    return check_schedule(s, chain_messages(p))
        .live[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage < 0 ? rank : stage)];
  };
  for (int rank = 0; rank < p; ++rank) {
    EXPECT_EQ(live("gpipe", rank), m);
    EXPECT_EQ(live("1f1b", rank), p - rank);
    EXPECT_LE(live("zero_bubble", rank), p);
    EXPECT_LE(live("dualpipe", rank) + live("dualpipe", rank, p - 1 - rank), p + 1);
  }
}

TEST(Schedules, TwoDirectionsHaveEveryStageTwice) {
  for (const char* name : {"bidirectional", "dualpipe"}) {
    const PipelineSchedule s = find_schedule(name)->make({4, 8});
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(rank_of(s, stage, 0), stage);
      EXPECT_EQ(rank_of(s, stage, 7), 3 - stage);
    }
  }
}

}  // namespace
}  // namespace echelon
