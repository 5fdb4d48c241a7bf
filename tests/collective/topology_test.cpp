#include "collective/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace echelon {
namespace {

TEST(Topology, PartsCoverEverythingInOrderAndDifferByOneGrain) {
  for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 1000u, 4099u})
    for (const int n : {1, 2, 3, 5, 8, 17})
      for (const std::size_t grain : {1u, 16u}) {
        std::size_t at = 0, least = count, most = 0;
        for (int i = 0; i < n; ++i) {
          const Range r = part_of(i, n, count, grain);
          EXPECT_EQ(r.begin, at);
          EXPECT_GE(r.end, r.begin);
          if (r.end < count) {
            EXPECT_EQ(r.end % grain, 0u);
            least = std::min(least, r.count());
          }
          most = std::max(most, r.count());
          at = r.end;
        }
        EXPECT_EQ(at, count);
        if (count > 0 && least < count) {
          EXPECT_LE(most, least + 2 * grain);
        }
      }
}

TEST(Topology, PartsOfHugeRangesDoNotOverflow) {
  const std::size_t count = ~std::size_t{0} / 2;
  EXPECT_EQ(part_of(9999, 10000, count).end, count);
  EXPECT_LT(part_of(1, 10000, count).begin, count / 5000);
}

TEST(Topology, EveryMemberOfABinaryTreeHasItsParentsAcknowledgement) {
  for (int n = 1; n <= 70; ++n)
    for (int shift = 0; shift < 2; ++shift) {
      int roots = 0;
      for (int i = 0; i < n; ++i) {
        const TreeNode node = tree_node(i, n, shift);
        if (node.parent < 0) {
          ++roots;
        } else {
          const TreeNode up = tree_node(node.parent, n, shift);
          EXPECT_TRUE(up.child[0] == i || up.child[1] == i) << i << " of " << n << ", shift " << shift;
        }
        for (const int child : node.child)
          if (child >= 0) {
            EXPECT_EQ(tree_node(child, n, shift).parent, i) << child << " of " << n;
          }
        int depth = 0;
        for (int at = i; (at = tree_node(at, n, shift).parent) >= 0;) ASSERT_LE(++depth, tree_depth(n)) << n;
      }
      EXPECT_EQ(roots, 1) << n;
    }
}

TEST(Topology, NobodyHasChildrenInBothTrees) {
  for (int n = 2; n <= 70; ++n)
    for (int i = 0; i < n; ++i) {
      const bool first = tree_node(i, n, 0).child[0] >= 0, second = tree_node(i, n, 1).child[0] >= 0;
      EXPECT_FALSE(first && second) << i << " of " << n;
    }
}

TEST(Topology, ABinomialTreeReachesEveryMemberOnce) {
  for (int n = 1; n <= 40; ++n) {
    std::multiset<int> reached;
    for (int i = 0; i < n; ++i)
      for (int bit = binomial_span(i, n); bit > 0; bit /= 2)
        if (i + bit < n) {
          reached.insert(i + bit);
          EXPECT_EQ(binomial_parent(i + bit), i);
        }
    EXPECT_EQ(static_cast<int>(reached.size()), n - 1);
    for (int i = 1; i < n; ++i) EXPECT_EQ(reached.count(i), 1u);
  }
}

TEST(Topology, AFoldLeavesAPowerOfTwo) {
  for (int n = 1; n <= 40; ++n) {
    const Fold fold = fold_of(n);
    EXPECT_EQ(fold.core & (fold.core - 1), 0);
    std::set<int> taking_part;
    for (int i = 0; i < n; ++i) {
      if (fold.sits_out(i)) continue;
      EXPECT_EQ(fold.member(fold.core_index(i)), i);
      taking_part.insert(fold.core_index(i));
    }
    EXPECT_EQ(static_cast<int>(taking_part.size()), fold.core);
  }
}

TEST(Topology, ASiteKnowsWhoSharesAHost) {
  const std::vector<int> hosts{7, 3, 7, 7, 3, 9};
  const HostTopology topology = host_topology_of(hosts, 4);
  EXPECT_EQ(topology.local, (std::vector<int>{1, 4}));
  EXPECT_EQ(topology.leaders, (std::vector<int>{0, 1, 5}));
  EXPECT_EQ(topology.local_index, 1);
  EXPECT_EQ(topology.host_index, 1);
  EXPECT_EQ(topology.most_local, 3);
}

}  // namespace
}  // namespace echelon
