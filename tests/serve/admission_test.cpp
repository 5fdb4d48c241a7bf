#include "serve/admission.h"

#include <gtest/gtest.h>

namespace echelon::serve {
namespace {

TEST(Admission, LetsInWhatIsAnsweredInTimeAndAFewInAnyCase) {
  Admission a(0.1, 2);
  double now = 100;
  // One answer every 10 ms, with long pauses between bursts, which do not count.
  for (int i = 0; i < 2000; ++i) {
    if (i % 100 == 0) now += 50;
    ASSERT_TRUE(a.enter(now));
    now += 0.01;
    a.leave(now);
  }
  int entered = 0;
  while (a.enter(now)) ++entered;
  EXPECT_GE(entered, 10);
  EXPECT_LE(entered, 11);
  // A slow one: two are let in, whatever they take.
  Admission slow(0.1, 2);
  EXPECT_TRUE(slow.enter(0));
  slow.leave(1000);
  EXPECT_TRUE(slow.enter(1000));
  EXPECT_TRUE(slow.enter(1000));
  EXPECT_FALSE(slow.enter(1000));
}

}  // namespace
}  // namespace echelon::serve
