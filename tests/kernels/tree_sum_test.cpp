#include "kernels/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace echelon::kernels {
namespace {

std::vector<std::vector<float>> tree_leaves(std::size_t count, std::size_t n) {
  std::vector<std::vector<float>> leaves;
  for (std::size_t k = 0; k < count; ++k) {
    const Stream s({.seed = 3, .layer = static_cast<std::uint32_t>(k)});
    leaves.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) leaves[k][i] = s.normal(i);
  }
  return leaves;
}

TEST(TreeSum, HasTheBitsOfTheReadableTwinWhereverItWrites) {
  for (std::size_t count : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 16u})
    for (std::size_t n : {1u, 7u, 1023u, 1024u, 2500u}) {
      auto leaves = tree_leaves(count, n);
      std::vector<const float*> in;
      for (const auto& leaf : leaves) in.push_back(leaf.data());
      std::vector<float> expected(n), beside(n);
      ref_tree_sum(in, expected.data(), n);
      tree_sum(in, beside.data(), n);
      ASSERT_EQ(beside, expected) << count << " leaves of " << n;
      const std::size_t over = count / 2;
      tree_sum(in, leaves[over].data(), n);
      ASSERT_EQ(leaves[over], expected) << count << " leaves of " << n << ", in place";
    }
}

TEST(TreeSum, SplitsAtTheLargestPowerOfTwo) {
  const std::vector<float> big{1e8f}, minus{-1e8f}, one{1};
  const std::vector<const float*> in{big.data(), minus.data(), one.data()};  // (big - big) + 1, not big + (-big + 1)
  float sum = 0;
  tree_sum(in, &sum, 1);
  EXPECT_EQ(sum, 1);
}

}  // namespace
}  // namespace echelon::kernels
