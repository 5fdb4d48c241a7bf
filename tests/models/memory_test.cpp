// The memory of a training step, known before it is taken.
#include "models/memory.h"

#include <gtest/gtest.h>

#include "base/checked.h"
#include "models/describe.h"
#include "models/zoo.h"

namespace echelon::models {
namespace {

std::unique_ptr<const Model> lenet() { return make_model("lenet5", find_model("lenet5").usual_inputs()); }

TEST(StepMemory, IsExactWhereItMatters) {
  const auto model = lenet();
  const Description d = describe(*model, 64);
  const StepMemory m = step_memory(*model, 64, d.step_bytes);
  EXPECT_EQ(m.parameters, d.parameter_bytes);
  EXPECT_EQ(m.arena, d.phases.front().arena);
  EXPECT_EQ(m.least(), d.step_bytes);
}

TEST(StepMemory, IsABoundWhereNothingDependsOnIt) {
  const auto model = lenet();
  const std::size_t exact = describe(*model, 64).step_bytes;
  EXPECT_GE(step_memory(*model, 64, std::size_t{1} << 40).least(), exact);
  const StepMemory little = step_memory(*model, 64, 1000);
  EXPECT_LE(little.least(), exact);
  EXPECT_GT(little.least(), 1000u);
}

TEST(StepMemory, OfASliceThatNoMachineHoldsIsStillAnAnswer) {
  const auto model = lenet();
  EXPECT_GT(step_memory(*model, 1 << 24, std::size_t{24} << 30).least(), std::size_t{100} << 30);
  EXPECT_THROW(step_memory(*model, std::int64_t{1} << 50, std::size_t{24} << 30), TooLarge);
}

}  // namespace
}  // namespace echelon::models
