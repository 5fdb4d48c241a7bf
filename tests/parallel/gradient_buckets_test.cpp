// Which gradients travel together where ranks share them.

#include "parallel/planned/gradient_buckets.h"

#include <gtest/gtest.h>

#include "graph/ops/communication.h"

namespace echelon {
namespace {

// A stage that contributes the gradients of these parameters, `forward` of them in the forward pass.
StagePlan stage_with(const std::vector<std::int64_t>& sizes, const std::vector<int>& order, std::size_t forward) {
  StagePlan stage;
  Graph& g = stage.plan.graph;
  std::vector<Value> values;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", p);
    parameter.shape = {sizes[p]};
    values.push_back(g.parameter(parameter));
  }
  for (const int p : order) ops::contribute(g, values[static_cast<std::size_t>(p)], p);
  stage.begin = {0, forward, order.size(), order.size()};
  return stage;
}

TEST(GradientBuckets, HoldNeighboursOfOnePassAndLeaveOutWhatIsLarge) {
  // All are 2000 and a sixteenth of that is 125; every parameter begins on a cache line of 16 floats.
  const StagePlan stage = stage_with({48, 48, 48, 1700, 16, 16, 128}, {2, 6, 5, 4, 3, 1, 0}, 1);
  ParameterTable table;
  table.include(stage.plan.graph);
  const GradientBuckets made = gradient_buckets(stage, table);
  // 0 and 1 come from the backward pass, 2 from the forward pass; 3 and 6 go by themselves; 4 and 5 lie between them.
  EXPECT_EQ(made.of_parameter, (std::vector<int>{0, 0, 1, -1, 2, 2, -1}));
  ASSERT_EQ(made.buckets.size(), 3u);
  EXPECT_EQ(made.buckets[0].elements, (Range{0, 96}));
  EXPECT_EQ(made.buckets[0].parameters, 2);
  EXPECT_EQ(made.buckets[1].elements, (Range{96, 144}));
  EXPECT_EQ(made.slot_floats, 96u);
  EXPECT_EQ(made.slots, 1u + 2u);  // one is filled at a time
}

}  // namespace
}  // namespace echelon
