// Runs of split models from their first step to their last, through checkpoints that another plan goes on from.

#include <gtest/gtest.h>

#include "tests/run/planned_runs.h"

namespace echelon {
namespace {

using test::go_on;
using test::prepare_in;

TEST(PlannedRuns, AnyPlanGoesOnFromAnyOther) {
  const std::pair<const char*, const char*> cases[] = {
      {"name = \"char_lstm\"\nhidden = 7\nlayers = 2\n",
       "kind = \"text\"\npath = \"text.txt\"\nlength = 6\nwindows = \"streams\"\nstreams = 20\n"},
      {"name = \"resnet20\"\n",
       "kind = \"synthetic\"\nmake = \"images\"\nshape = [3, 32, 32]\nsamples = 60\nsamples_test = 20\nclasses = 4\n"}};
  for (const auto& [model, data] : cases) {
    const test::TempDir dir;
    const PreparedRun prepared = prepare_in(dir, model, data);
    const std::int64_t end = prepared.total_steps;
    const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
    // Three pieces of the run: split, unsplit on two ranks, split in another way.
    const std::string pieces = dir.path("pieces");
    go_on(prepared, pieces, "data=2,pipeline=2,schedule=1f1b", 4, end / 3);
    go_on(prepared, pieces, "", 2, 2 * end / 3);
    EXPECT_EQ(go_on(prepared, pieces, "pipeline=3,schedule=zero_bubble", 3, end), whole) << model;
  }
}

}  // namespace
}  // namespace echelon
