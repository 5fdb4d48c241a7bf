#include "base/random.h"

#include <gtest/gtest.h>

#include "base/normal_block.h"

namespace echelon {
namespace {

// The published known-answer vectors of Philox 4x32-10 pin the generator itself.
TEST(Random, PhiloxMatchesItsPublishedVectors) {
  EXPECT_EQ(detail::philox({0, 0, 0, 0}, 0, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(detail::philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  const Stream s({.seed = 7, .layer = stream_layer("test")});
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) sum += s.normal(i), squares += s.normal(i) * s.normal(i);
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(Random, StreamsDifferInEveryCoordinate) {
  const std::uint32_t base = Stream({.seed = 1, .step = 1, .shard = 1, .layer = 1}).bits(5);
  EXPECT_NE(base, Stream({.seed = 2, .step = 1, .shard = 1, .layer = 1}).bits(5));
  EXPECT_NE(base, Stream({.seed = 1, .step = 2, .shard = 1, .layer = 1}).bits(5));
  EXPECT_NE(base, Stream({.seed = 1, .step = 1, .shard = 2, .layer = 1}).bits(5));
  EXPECT_NE(base, Stream({.seed = 1, .step = 1, .shard = 1, .layer = 2}).bits(5));
  EXPECT_NE(base, Stream({.seed = 1, .step = 1, .shard = 1, .layer = 1}).bits(6));
}

TEST(Random, FourNormalNumbersAreThoseOneByOne) {
  const Stream stream({.seed = 7, .layer = stream_layer("normals")});
  for (std::uint32_t block = 0; block < 500; ++block) {
    const auto four = normal_block(stream, block);
    for (std::uint32_t k = 0; k < 4; ++k) ASSERT_EQ(four[k], stream.normal(4 * block + k)) << block << ", " << k;
  }
}

}  // namespace
}  // namespace echelon
