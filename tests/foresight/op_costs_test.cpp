#include "foresight/costs/op_costs.h"

#include <gtest/gtest.h>

namespace echelon::foresight {

namespace {

OpCost op_cost(double seconds, double bytes) { return {{seconds, 2 * seconds}, 0, bytes}; }

TEST(OpCosts, MeasuredOnesAreGivenBackAsTheyAre) {
  OpCosts costs;
  costs.set("relu", "a", op_cost(3e-6, 1000));
  const FoundCost found = costs.of("relu", "a", {.seconds = {}, .flops = 0, .bytes = 1000});
  EXPECT_EQ(found.source, CostSource::measured);
  EXPECT_EQ(found.seconds.alone, 3e-6);
  EXPECT_EQ(found.seconds.together, 6e-6);
}

TEST(OpCosts, BetweenTwoSizesItIsInterpolated) {
  OpCosts costs;
  costs.set("relu", "small", op_cost(1e-6, 1000));
  costs.set("relu", "large", op_cost(5e-6, 3000));
  const FoundCost found = costs.of("relu", "middle", {.seconds = {}, .flops = 0, .bytes = 2000});
  EXPECT_EQ(found.source, CostSource::interpolated);
  EXPECT_NEAR(found.seconds.alone, 3e-6, 1e-12);
  EXPECT_NEAR(found.seconds.together, 6e-6, 1e-12);
  // Outside of what was measured: in proportion to the nearest.
  EXPECT_NEAR(costs.of("relu", "huge", {.seconds = {}, .flops = 0, .bytes = 6000}).seconds.alone, 10e-6, 1e-12);
}

TEST(OpCosts, WithoutAnyOfItsKindTheRooflineDecides) {
  OpCosts costs;
  costs.roofline = {.flops = 1e9, .bytes = 1e9};
  const FoundCost arithmetic = costs.of("conv2d", "x", {.seconds = {}, .flops = 2e9, .bytes = 10});
  EXPECT_EQ(arithmetic.source, CostSource::roofline);
  EXPECT_NEAR(arithmetic.seconds.alone, 2, 1e-9);
  EXPECT_NEAR(costs.of("copy", "x", {.seconds = {}, .flops = 10, .bytes = 3e9}).seconds.alone, 3, 1e-9);
  // Half of the peak is what others of the same intensity have reached here.
  costs.set("gemm", "y", {.seconds = {2, 2}, .flops = 1e9, .bytes = 10});
  EXPECT_NEAR(costs.of("conv2d", "x", {.seconds = {}, .flops = 2e9, .bytes = 10}).seconds.alone, 4, 1e-9);
}

TEST(OpCosts, CoresThatShareAMachineAreSlower) {
  const CoreSeconds s{1, 2};
  EXPECT_EQ(s.with(1, 4), 1);
  EXPECT_EQ(s.with(4, 4), 2);
  EXPECT_EQ(s.with(8, 4), 2);
  EXPECT_NEAR(s.with(2, 4), 1 + 1.0 / 3, 1e-12);
  EXPECT_EQ(s.with(1, 1), 1);
}

}  // namespace

}  // namespace echelon::foresight
