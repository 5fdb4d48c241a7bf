#include "run/health/replica_check.h"

#include <gtest/gtest.h>

namespace echelon {
namespace {

// What three ranks saw of four steps: contributions by rank, then hashes of weights, of weights computed again, and of
// the contribution to that (rank r computes again what rank r - 1 has).
Json seen() {
  return {{"step", 4},
          {"steps", 4},
          {"contributions", {10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}},
          {"ranks", {{7, 7, 33, 1}, {7, 7, 13, 1}, {7, 7, 23, 1}}}};
}

TEST(ReplicaCheck, TheFirstOneWhoseContributionWasAnotherIsTheCulprit) {
  const Json truth = seen();
  for (int r = 0; r < 3; ++r)
    for (int step = 0; step < 4; ++step) {
      Json was = seen();
      was["contributions"][static_cast<std::size_t>(4 * r + step)] = 99;
      for (int later = step + 1; later < 4; ++later)  // from then on all were wrong
        for (int other = 0; other < 3; ++other) was["contributions"][static_cast<std::size_t>(4 * other + later)] = 98;
      for (Json& rank : was["ranks"]) rank[0] = rank[1] = 8;
      EXPECT_EQ(find_culprit(was, truth), r) << "at step " << step;
    }
}

TEST(ReplicaCheck, ARankWhoseWeightsAloneWereOthersIsTheCulprit) {
  for (std::size_t r = 0; r < 3; ++r) {
    Json was = seen();
    was["ranks"][r][0] = 8;
    EXPECT_EQ(find_culprit(was, seen()), static_cast<int>(r));
  }
}

TEST(ReplicaCheck, WhoComputedTheLastStepAgainToAnotherEndIsTheCulprit) {
  for (std::size_t r = 0; r < 3; ++r) {
    Json was = seen();
    was["ranks"][r][2] = 99;
    for (Json& rank : was["ranks"]) rank[1] = 8;
    EXPECT_EQ(find_culprit(was, seen()), static_cast<int>(r));
    Json alone = seen();
    alone["ranks"][r][1] = 8;
    EXPECT_EQ(find_culprit(alone, seen()), static_cast<int>(r));
  }
}

TEST(ReplicaCheck, NobodyIsBlamedWithoutEvidence) {
  EXPECT_EQ(find_culprit(seen(), seen()), -1);
  Json fewer = seen();
  fewer["steps"] = 3;
  EXPECT_EQ(find_culprit(fewer, seen()), -1);
}

}  // namespace
}  // namespace echelon
