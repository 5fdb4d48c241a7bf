// Plans with rules of layers, and one weird trick: the same weights as without a plan, through checkpoints too.

#include <gtest/gtest.h>

#include "tests/run/planned_runs.h"

namespace echelon {
namespace {

using test::go_on;
using test::prepare_in;

constexpr const char* small_digits =
    "kind = \"synthetic\"\nmake = \"images\"\nshape = [1, 28, 28]\nsamples = 60\nsamples_test = 20\nclasses = 4\n";

constexpr const char* small_network =
    "name = \"layers\"\nslices = 4\nlayers = [{type = \"conv2d\", name = \"conv1\", out = 4, kernel = 5, stride = 2}, "
    "{type = \"relu\"}, {type = \"conv2d\", name = \"conv2\", out = 8, kernel = 3, stride = 2}, {type = \"relu\"}, "
    "{type = \"flatten\"}, {type = \"linear\", name = \"fc1\", out = 16}, {type = \"relu\"}, "
    "{type = \"linear\", name = \"fc2\", out = 4}]\n";

std::string write_plan_file(const test::TempDir& dir, const std::string& name, const std::string& text) {
  write_file_atomically(*make_real_disk(), dir.path(name + ".toml"), text);
  return dir.path(name + ".toml");
}

TEST(SplitLayers, AnyRulesGiveTheSameWeights) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_in(dir, small_network, small_digits);
  const std::int64_t end = prepared.total_steps;
  const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
  const std::pair<int, const char*> plans[] = {
      {4, "[[layer]]\nmatch = \"fc*\"\nways = 4\n"},
      {4, "tensor = 4\n[[layer]]\nmatch = \"conv*\"\nways = 2\n[[layer]]\nmatch = \"fc1\"\nsplit = \"out\"\n"},
      {4, "tensor = 4\n[[layer]]\nmatch = \"fc*\"\nsplit = \"none\"\n"},
      {4,
       "tensor = 2\n[[layer]]\nmatch = \"conv*\"\nsplit = \"none\"\nstage = 0\n[[layer]]\nmatch = \"fc*\"\nstage = "
       "1\n"},
      {4, "mesh = [2, 2]\nlayout = [\"batch:rows\", \"channels:columns\"]\n"}};
  for (const auto& [workers, text] : plans)
    EXPECT_EQ(go_on(prepared, dir.path(fmt::format("{}", std::hash<std::string>{}(text))),
                    write_plan_file(dir, "plan", text), workers, end),
              whole)
        << text;
}

TEST(SplitLayers, ALocallyConnectedLayerIsSplitByRows) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_in(
      dir,
      "name = \"layers\"\nslices = 4\nlayers = [{type = \"locally_connected\", name = \"local\", out = 3, kernel = "
      "5}, {type = \"relu\"}, {type = \"locally_connected\", out = 2, stride = 2}, {type = \"flatten\"}, {type = "
      "\"linear\", out = 4}]\n",
      small_digits);
  const std::int64_t end = prepared.total_steps;
  const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
  for (const auto& [workers, text] : {std::pair(2, "tensor=2"), {4, "tensor=4"}, {4, "tensor=2,pipeline=2"}})
    EXPECT_EQ(go_on(prepared, dir.path(text), text, workers, end), whole) << text;
}

// Three fully connected layers: parts exchange something on the way forward and on the way back.
TEST(SplitLayers, PassesThatAreCutAtExchangesGiveTheSameWeights) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_in(
      dir,
      "name = \"layers\"\nslices = 4\nlayers = [{type = \"conv2d\", name = \"conv1\", out = 4, kernel = 5, stride = "
      "4}, {type = \"relu\"}, {type = \"flatten\"}, {type = \"linear\", name = \"fc1\", out = 256}, {type = \"relu\"}, "
      "{type = \"dropout\", p = 0.3}, {type = \"linear\", name = \"fc2\", out = 64}, {type = \"relu\"}, {type = "
      "\"linear\", name = \"fc3\", out = 4}]\n",
      small_digits, 8);
  const std::int64_t end = prepared.total_steps;
  const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
  for (const int tensor : {2, 4}) {
    const std::string plan = write_plan_file(
        dir, "cut",
        fmt::format("tensor = {}\nscheme = \"pipelined\"\n[[layer]]\nmatch = \"conv*\"\nsplit = \"batch\"\n[[layer]]\n"
                    "match = \"fc*\"\nstage = 1\n",
                    tensor));
    Problems problems;
    const PlanSpec spec =
        check_run_plan(prepared, read_run_plan(*make_real_disk(), prepared.recipe, plan, problems), 4, 0, problems);
    ASSERT_TRUE(problems.empty());
    ASSERT_EQ(spec.segments.size(), 2u);
    EXPECT_EQ(spec.segments[0], (std::array<int, 2>{1, 1})) << "the first layers exchange nothing";
    EXPECT_GT(spec.segments[1][0], 1);
    EXPECT_GT(spec.segments[1][1], 1);
    EXPECT_EQ(go_on(prepared, dir.path(fmt::format("{}", tensor)), plan, 4, end), whole) << tensor;
  }
}

TEST(SplitLayers, EverySchemeOfOneWeirdTrickGivesTheSameWeights) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_in(dir, small_network, small_digits, 8);
  const std::int64_t end = prepared.total_steps;
  const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
  for (const char* scheme : {"a", "b", "c", "pipelined"})
    for (const int tensor : {2, 4}) {
      // The second in as many stages as there are fully connected layers.
      const std::string plan = write_plan_file(
          dir, "weird",
          fmt::format(
              "tensor = {}\nscheme = \"{}\"\n[[layer]]\nmatch = \"conv*\"\nsplit = \"batch\"\n[[layer]]\nmatch = "
              "\"fc1\"\nstage = 1\n[[layer]]\nmatch = \"fc2\"\nstage = {}\n",
              tensor, scheme, tensor == 4 ? 2 : 1));
      const std::string folder = dir.path(fmt::format("{}{}", scheme, tensor));
      go_on(prepared, folder, plan, 4, end / 2);
      if (tensor == 4) go_on(prepared, folder, "tensor=4", 4, 2 * end / 3);
      EXPECT_EQ(go_on(prepared, folder, plan, 4, end), whole) << scheme << " on " << tensor;
    }
}

}  // namespace
}  // namespace echelon
