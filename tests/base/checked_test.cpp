#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/listed.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

TEST(Checked, ResultsThatFitAreExact) {
  EXPECT_EQ(checked_add<std::int64_t>(most - 1, 1, "x"), most);
  EXPECT_EQ(checked_multiply<std::int64_t>(1 << 30, 1 << 30, "x"), std::int64_t{1} << 60);
  EXPECT_EQ(checked_multiply<std::int64_t>(-3, 7, "x"), -21);
  EXPECT_EQ(checked_narrow<int>(std::int64_t{2147483647}, "x"), 2147483647);
}

TEST(Checked, WhatWouldWrapAroundIsRefusedByName) {
  EXPECT_THROW(checked_add<std::int64_t>(most, 1, "x"), TooLarge);
  EXPECT_THROW(checked_multiply<std::uint64_t>(1ull << 40, 1ull << 24, "x"), TooLarge);
  EXPECT_THROW(checked_narrow<int>(std::int64_t{1} << 31, "x"), TooLarge);
  EXPECT_THROW(checked_narrow<unsigned>(-1, "x"), TooLarge);
  EXPECT_TRUE(test::says(
      test::complaint_of([] { checked_multiply<std::int64_t>(std::int64_t{1} << 40, 1 << 24, "the enlarged width"); }),
      "the enlarged width: 1099511627776 x 16777216 is too large"));
}

TEST(Listed, StaysShort) {
  EXPECT_EQ(listed(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(listed(std::vector<std::string>(1000, "x"), 3), "x, x, x and 997 more");
  EXPECT_LT(listed(std::vector<std::string>(1'000'000, std::string(1000, 'y'))).size(), 2000u);
  EXPECT_EQ(listed({}), "");
}

}  // namespace
}  // namespace echelon
