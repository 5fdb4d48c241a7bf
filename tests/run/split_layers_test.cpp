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

TEST(SplitLayers, EverySchemeOfOneWeirdTrickGivesTheSameWeights) {
  const test::TempDir dir;
  const PreparedRun prepared = prepare_in(dir, small_network, small_digits, 8);
  const std::int64_t end = prepared.total_steps;
  const std::string whole = go_on(prepared, dir.path("whole"), "", 1, end);
  for (const char* scheme : {"a", "b", "c"})
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
