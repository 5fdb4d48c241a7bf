#include "track/run.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/faulty_disk.h"
#include "tests/support/power_loss_disk.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

TEST(Run, NewRunsHaveNamesOfTheirOwn) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const std::string root = dir.path("a/runs");
  EXPECT_EQ(create_run(*disk, root, "demo", "x = 1\n").path, root + "/demo-1");
  EXPECT_EQ(create_run(*disk, root + "/", "demo", "x = 2\n").path, root + "/demo-2");
  EXPECT_EQ(create_run(*disk, root, "demo-2", "").name(), "demo-2-1");
  EXPECT_EQ(create_run(*disk, root, "demo", "").name(), "demo-3");
  EXPECT_EQ(read_text(*disk, RunFolder{root + "/demo-2"}.recipe()), "x = 2\n");
  for (const auto& name : disk->list(root)) EXPECT_FALSE(name.starts_with('.')) << name;
}

TEST(Run, ANameTakenAtTheSameMomentIsNotTakenAgain) {
  // A listing that is out of date: another program has just created demo-1 and demo-2.
  class Stale : public test::FaultyDisk {
   public:
    using FaultyDisk::FaultyDisk;
    std::vector<std::string> list(const std::string&) override { return {}; }
  };
  const test::TempDir dir;
  const auto real = make_real_disk();
  for (const char* recipe : {"one", "two"}) create_run(*real, dir.path(), "demo", recipe);
  Stale disk(*real);
  EXPECT_EQ(create_run(disk, dir.path(), "demo", "three").name(), "demo-3");
  EXPECT_EQ(read_text(*real, dir.path("demo-1/recipe.toml")), "one");
  EXPECT_EQ(read_text(*real, dir.path("demo-2/recipe.toml")), "two");
}

TEST(Run, AppearsWholeOrNotAtAll) {
  const auto real = make_real_disk();
  bool ended = false;
  for (std::size_t call = 0; !ended; ++call) {
    const test::TempDir dir;
    test::PowerLossDisk powered(*real);
    test::FaultyDisk disk(powered);
    disk.fail_at(call, test::Fault::dead);
    bool created = true;
    try {
      create_run(disk, dir.path("runs"), "demo", "recipe");
    } catch (const DiskError&) {
      created = false;
    }
    ended = disk.calls() <= call;
    powered.lose_power();
    const auto runs = list_runs(*real, dir.path("runs"));
    EXPECT_LE(runs.size(), 1u);
    EXPECT_TRUE(!created || runs.size() == 1) << call;
    for (const auto& run : runs) EXPECT_EQ(read_text(*real, run.folder.recipe()), "recipe");
  }
}

TEST(Run, AFolderOfTheUsersChoiceMustBeFree) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  EXPECT_EQ(create_run_at(*disk, dir.path("mine/"), "r").path, dir.path("mine"));
  EXPECT_TRUE(says(complaint_of([&] { create_run_at(*disk, dir.path("mine"), "r"); }), "--resume"));
  disk->make_directories(dir.path("empty"));
  EXPECT_EQ(create_run_at(*disk, dir.path("empty"), "r").name(), "empty");
  disk->make_directories(dir.path("full/of"));
  EXPECT_TRUE(says(complaint_of([&] { create_run_at(*disk, dir.path("full"), "r"); }), "not an empty folder"));
  write_file_atomically(*disk, dir.path("file"), "x");
  EXPECT_TRUE(says(complaint_of([&] { create_run_at(*disk, dir.path("file"), "r"); }), "not an empty folder"));
  EXPECT_EQ(disk->list(dir.path("full")), std::vector<std::string>{"of"});
}

TEST(Run, OpensByPathOrByName) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto run = create_run(*disk, dir.path("runs"), "lenet5", "r");
  EXPECT_EQ(open_run(*disk, dir.path("runs"), "lenet5-1").path, run.path);
  EXPECT_EQ(open_run(*disk, "elsewhere", run.path + "/").path, run.path);
  EXPECT_TRUE(says(complaint_of([&] { open_run(*disk, dir.path("runs"), "lenet-1"); }), "did you mean 'lenet5-1'?"));
  EXPECT_TRUE(says(complaint_of([&] { open_run(*disk, dir.path("none"), "x"); }), "it has none"));
}

TEST(Run, ListsRunsWithTheirEndsAndSummaries) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto late = create_run(*disk, dir.path(), "a", "r"), early = create_run(*disk, dir.path(), "b", "r"),
             bare = create_run(*disk, dir.path(), "c", "r");
  const auto fill = [&](const RunFolder& run, double start, int steps) {
    std::string text;
    for (int i = 1; i <= steps; ++i) text += to_jsonl({i, 0, start + i, {{"train_loss", 1.0 / i}}});
    write_file_atomically(*disk, run.metrics(), text + "{\"step\": 99");  // and a torn line
  };
  fill(late, 2000, 10'000);  // more than is read at once
  fill(early, 1000, 3);
  write_summary(*disk, late, {{"stopped_by", "steps"}, {"test_accuracy", 0.99}});
  write_file_atomically(*disk, early.summary(), "{ damaged");

  const auto runs = list_runs(*disk, dir.path());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].folder.name(), "c-1");
  EXPECT_FALSE(runs[0].last);
  EXPECT_EQ(runs[1].folder.name(), "b-1");
  EXPECT_EQ(runs[1].first->step, 1);
  EXPECT_EQ(runs[1].last->step, 3);
  EXPECT_TRUE(runs[1].summary.is_null());
  EXPECT_EQ(runs[2].first->step, 1);
  EXPECT_EQ(runs[2].last->step, 10'000);
  EXPECT_EQ(runs[2].summary["stopped_by"], "steps");
  EXPECT_THROW(read_summary(*disk, early), BadInput);
  EXPECT_TRUE(list_runs(*disk, dir.path("absent")).empty());
}

TEST(Run, ASummaryOfOtherTypesCountsAsNone) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const RunFolder run = create_run(*disk, dir.path(), "a", "r");
  for (const char* text : {R"([1])", R"({"steps": {"a": 1}})", R"({"steps": 1e300})", R"({"stopped_by": 7})",
                           R"({"weights_sha256": []})", R"({"init": {"from": 3}})", R"({"workers": "x"})"}) {
    write_file_atomically(*disk, run.summary(), text);
    EXPECT_THROW(read_summary(*disk, run), BadInput) << text;
    EXPECT_TRUE(read_run(*disk, run).summary.is_null()) << text;
  }
}

TEST(Run, OneThatCannotBeReadDoesNotHideTheOthers) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const RunFolder good = create_run(*disk, dir.path(), "a", "r"), bad = create_run(*disk, dir.path(), "b", "r");
  write_file_atomically(*disk, good.metrics(), to_jsonl({1, 0, 5, {{"train_loss", 1.0}}}));
  disk->make_directories(bad.metrics());
  const auto runs = list_runs(*disk, dir.path());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].name, "b-1");
  EXPECT_FALSE(runs[0].first);
  EXPECT_EQ(runs[1].last->step, 1);
}

}  // namespace
}  // namespace echelon
