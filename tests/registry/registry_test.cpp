#include "registry/registry.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "registry/index.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "world/os/folder_lock.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

RunRecord full_record(const std::string& name) {
  RunRecord r{.name = name,
              .stamp = "1",
              .values = {{"optim.lr", 0.5}, {"model", std::string("mlp")}, {"weights_sha256", std::string("ff")}},
              .labels = {},
              .checkpoints = {{10, "aa", 0.5}, {20, "bb", std::nullopt}}};
  r.labels = {.tags = {"x", "y"}, .note = "a note", .star = true, .versions = {{"digits", 1, "staging", 20}}};
  return r;
}

TEST(Registry, GivesBackWhatWasPutIn) {
  const test::TempDir dir;
  const RunRecord r = full_record("group/one");
  Registry(dir.path()).put(r);
  Registry again(dir.path());  // another process would see the same
  EXPECT_EQ(to_json(again.get("group/one")), to_json(r));
  EXPECT_EQ(again.stamps(), (std::map<std::string, std::string>{{"group/one", "1"}}));
  EXPECT_TRUE(says(complaint_of([&] { again.get("group/on"); }), "did you mean 'group/one'?"));
}

TEST(Registry, AFileThatIsNoneIsRefusedWithTheCureAndLeftAlone) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const std::string path = dir.path(Registry::file_name);
  write_file_atomically(*disk, path, std::string(5000, 'x'));
  EXPECT_TRUE(says(complaint_of([&] { Registry(dir.path()); }), "makes it again from the runs' folders"));
  EXPECT_EQ(read_text(*disk, path), std::string(5000, 'x'));
  disk->remove_all(path);
  write_file_atomically(*disk, dir.path("elsewhere"), "");
  std::filesystem::create_symlink(dir.path("elsewhere"), path);
  EXPECT_TRUE(says(complaint_of([&] { Registry(dir.path()); }), "is a symbolic link"));
  EXPECT_EQ(read_text(*disk, dir.path("elsewhere")), "");
}

TEST(Registry, AnotherRecordOfTheSameNameReplacesAllOfIt) {
  const test::TempDir dir;
  Registry registry(dir.path());
  registry.put(full_record("one"));
  registry.put({.name = "one", .stamp = "2", .values = {{"seconds", 1.0}}, .labels = {}, .checkpoints = {}});
  const RunRecord r = registry.get("one");
  EXPECT_EQ(r.values.count("model"), 0u);
  EXPECT_TRUE(r.labels.tags.empty() && r.labels.versions.empty() && r.checkpoints.empty());
  EXPECT_TRUE(registry.versions().empty());
  registry.remove("one");
  EXPECT_TRUE(registry.keys().empty());
}

TEST(Registry, VersionsCountUpAndWeightsAreFound) {
  const test::TempDir dir;
  Registry registry(dir.path());
  EXPECT_EQ(registry.highest_version("digits"), 0);
  registry.put(full_record("one"));
  EXPECT_EQ(registry.highest_version("digits"), 1);
  EXPECT_EQ(registry.highest_version("other"), 0);
  EXPECT_EQ(registry.versions("digits").at(0).run, "one");
  EXPECT_EQ(registry.with_weights("bb"), std::vector<std::string>{"one"});
  EXPECT_EQ(registry.with_weights("ff"), std::vector<std::string>{"one"});
  EXPECT_TRUE(registry.with_weights("cc").empty());
}

class Index : public ::testing::Test {
 protected:
  Index() : disk(make_real_disk()), registry(dir.path()) {}
  IndexCounts refresh(bool anew = false) {
    return refresh_index(
        *disk, dir.path(), registry,
        [&](const RunFolder& folder, const std::string& name) {
          RunRecord r{.name = name, .stamp = "", .values = {}, .labels = {}, .checkpoints = {}};
          r.values["recipe"] = read_text(*disk, folder.recipe());
          r.labels = read_labels(*disk, folder);
          return r;
        },
        anew);
  }
  test::TempDir dir;
  std::unique_ptr<Disk> disk;
  Registry registry;
};

TEST_F(Index, ReadsWhatHasChangedAndForgetsWhatIsGone) {
  const RunFolder one = create_run(*disk, dir.path(), "demo", "a");
  create_run(*disk, dir.path("group"), "demo", "b");
  EXPECT_EQ(refresh().read, 2);
  EXPECT_EQ(registry.names_of_runs(), (std::vector<std::string>{"demo-1", "group/demo-1"}));
  EXPECT_EQ(refresh().read, 0);
  write_labels(*disk, one, {.tags = {"x"}, .note = "", .star = false, .versions = {}});
  EXPECT_EQ(refresh().read, 1);
  EXPECT_EQ(registry.find("tag = x").size(), 1u);
  disk->remove_all(one.path);
  EXPECT_EQ(refresh().removed, 1);
  EXPECT_EQ(refresh(true).read, 1);
}

TEST_F(Index, SeesThatAProcessTrainsInARunOrDoesNoMore) {
  const RunFolder one = create_run(*disk, dir.path(), "demo", "a");
  refresh();
  {
    const auto lock = lock_folder(one.path);
    EXPECT_EQ(refresh().read, 1);
  }
  EXPECT_EQ(refresh().read, 1);
}

TEST_F(Index, TheTrashKeepsRunsAndGivesThemBack) {
  const RunFolder one = create_run(*disk, dir.path(), "demo", "a");
  EXPECT_EQ(throw_away(*disk, dir.path(), "demo-1"), dir.path(".trash/demo-1"));
  EXPECT_EQ(refresh().runs, 0);
  EXPECT_EQ(in_trash(*disk, dir.path()), std::vector<std::string>{"demo-1"});
  create_run(*disk, dir.path(), "demo", "b");  // the name is free again
  EXPECT_TRUE(says(complaint_of([&] { take_back(*disk, dir.path(), "demo-1"); }), "already one of this name"));
  disk->remove_all(one.path);
  take_back(*disk, dir.path(), "demo-1");
  EXPECT_EQ(read_text(*disk, one.recipe()), "a");
}

TEST_F(Index, TheTrashTakesNothingButRuns) {
  for (const char* name : {"..", "../x", "/etc", ".trash/demo-1", "a/../../b", ""})
    EXPECT_TRUE(says(complaint_of([&] { throw_away(*disk, dir.path(), name); }), "no name of a run")) << name;
  const RunFolder one = create_run(*disk, dir.path(), "demo", "a");
  EXPECT_TRUE(says(complaint_of([&] { throw_away(*disk, dir.path(), "demo-2"); }), "did you mean 'demo-1'?"));
  const auto lock = lock_folder(one.path);
  EXPECT_TRUE(says(complaint_of([&] { throw_away(*disk, dir.path(), "demo-1"); }), "a process trains in it"));
}

TEST(Labels, SurviveBeingWrittenAndReadAndDamageIsNamed) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const RunFolder run = create_run(*disk, dir.path(), "demo", "a");
  EXPECT_TRUE(read_labels(*disk, run).tags.empty());
  const Labels labels = full_record("x").labels;
  write_labels(*disk, run, labels);
  EXPECT_EQ(to_json(read_labels(*disk, run)), to_json(labels));
  for (const char* damaged :
       {"{", "[]", "{\"tags\": 3}", "{\"tags\":[\"a,b\"],\"note\":\"\",\"star\":true,\"versions\":[]}"}) {
    write_file_atomically(*disk, labels_path(run), damaged);
    EXPECT_THROW(read_labels(*disk, run), BadInput) << damaged;
  }
}

TEST(Labels, TagsAreWordsAndStagesAreFour) {
  Labels labels;
  change_tags(labels, {"b", "a", "b"}, {});
  EXPECT_EQ(labels.tags, (std::vector<std::string>{"a", "b"}));
  change_tags(labels, {"c"}, {"a"});
  EXPECT_EQ(labels.tags, (std::vector<std::string>{"b", "c"}));
  for (const std::string& bad : {std::string(""), std::string("a\nb"), std::string("a,b"), std::string(65, 'x')})
    EXPECT_THROW(check_tag(bad), BadInput) << bad;
  EXPECT_TRUE(says(complaint_of([] { check_stage("productoin"); }), "did you mean 'production'?"));
  for (const char* bad : {"", "x@1", "a b/../c", "..", "-x", "a/b", "a,b", "\xc3\xa4"})
    EXPECT_THROW(check_model_name(bad), BadInput) << bad;
  for (const char* good : {"digits", "lenet-5.1_b", "7"}) EXPECT_NO_THROW(check_model_name(good)) << good;
}

}  // namespace
}  // namespace echelon
