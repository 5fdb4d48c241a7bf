// Which rank has what.
#include "plan/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace echelon {
namespace {

TEST(PlanLayout, EveryRankHasOnePlaceInOneReplica) {
  for (const char* neighbours : {"stages", "replicas"}) {
    const PlanSpec plan{.data = 3, .pipeline = 2, .tensor = 2, .neighbours = neighbours};
    for (int rank = 0; rank < 12; ++rank) EXPECT_EQ(plan.rank_at(plan.replica_of(rank), plan.place_of(rank)), rank);
  }
}

TEST(PlanLayout, NeighboursAreStagesOrReplicas) {
  PlanSpec plan{.data = 3, .pipeline = 2, .tensor = 2};
  const auto ranks = [&](int stage, int part) { return PlanLayout(plan, 6).ranks_of_stage(stage, part); };
  EXPECT_EQ(ranks(0, 1), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(ranks(1, 0), (std::vector<int>{2, 6, 10}));
  plan.neighbours = "replicas";
  EXPECT_EQ(ranks(0, 1), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(ranks(1, 0), (std::vector<int>{6, 7, 8}));
}

TEST(PlanLayout, ARanksStagesAreThoseWhoseRanksItIsAmong) {
  for (const char* neighbours : {"stages", "replicas"})
    for (const char* schedule : {"1f1b", "bidirectional"}) {
      const PlanSpec plan{.data = 2, .pipeline = 2, .tensor = 2, .schedule = schedule, .neighbours = neighbours};
      const PlanLayout layout(plan, 8);
      for (int rank = 0; rank < layout.ranks(); ++rank)
        for (const HostedStage& h : layout.hosted(rank)) {
          const std::vector<int> ranks = layout.ranks_of_stage(h.stage, h.part);
          EXPECT_TRUE(std::ranges::find(ranks, rank) != ranks.end()) << rank << " " << h.stage;
          EXPECT_EQ(layout.rank_of(layout.replica_of(rank), h.line, h.stage, h.part), rank);
        }
    }
}

}  // namespace
}  // namespace echelon
