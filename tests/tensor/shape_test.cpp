#include "tensor/shape.h"

#include <gtest/gtest.h>

#include "base/checked.h"
#include "tests/support/says.h"

namespace echelon {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{64, 3, 32, 32}).elements(), 196608);
  EXPECT_EQ((Shape{5, 0, 7}).elements(), 0);
  EXPECT_EQ((Shape{1 << 30, 1 << 30, 4}).elements(), std::int64_t{1} << 62);
}

TEST(Shape, ElementsThatCannotBeCountedAreRefused) {
  const Shape huge{1 << 30, 1 << 30, 1 << 30};
  EXPECT_THROW(huge.elements(), TooLarge);
  EXPECT_TRUE(test::says(test::complaint_of([&] { huge.elements(); }), "[1073741824, 1073741824, 1073741824]"));
}

TEST(Shape, HasAtMostSixDimensions) { EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), BadInput); }

}  // namespace
}  // namespace echelon
