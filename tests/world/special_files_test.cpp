// What is no regular file is refused at once: nobody waits for a pipe's other end, or reads a device for ever.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "world/os/disk.h"
#include "world/os/folder_disk.h"
#include "world/os/host.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

TEST(SpecialFiles, AreRefusedWithoutWaiting) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  ASSERT_EQ(::mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(says(complaint_of([&] { disk->open(dir.path("pipe")); }), "pipe: is a pipe, not a regular file"));
  EXPECT_TRUE(says(complaint_of([&] { disk->open("/dev/zero"); }), "/dev/zero: is a device, not a regular file"));
  EXPECT_TRUE(says(complaint_of([&] { read_text(*disk, "/dev/null"); }), "is a device"));
  std::filesystem::create_symlink("/dev/zero", dir.path("link"));
  EXPECT_TRUE(says(complaint_of([&] { read_file(*disk, dir.path("link"), 10); }), "is a device"));
}

TEST(SpecialFiles, DirectoriesAndAbsentFilesAreDiskErrors) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto error_of = [&](const std::string& path) {
    try {
      disk->open(path);
    } catch (const DiskError& e) {
      return e.error_number();
    }
    return 0;
  };
  EXPECT_EQ(error_of(dir.path()), EISDIR);
  EXPECT_EQ(error_of(dir.path("absent")), ENOENT);
}

TEST(SpecialFiles, RegularFilesAreReadAsBefore) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_file_atomically(*disk, dir.path("a"), "content");
  std::filesystem::create_symlink("a", dir.path("link"));
  EXPECT_EQ(read_text(*disk, dir.path("a")), "content");
  EXPECT_EQ(read_text(*disk, dir.path("link")), "content");
}

// A run's folder with a link in it that leads to somebody else's files.
class FolderDiskTest : public testing::Test {
 protected:
  FolderDiskTest() {
    const auto disk = make_real_disk();
    disk->make_directories(dir_.path("run/logs"));
    disk->make_directories(dir_.path("outside/step-1"));
    write_file_atomically(*disk, dir_.path("outside/step-1/data"), "somebody else's");
    write_file_atomically(*disk, dir_.path("run/own"), "own");
    std::filesystem::create_directory_symlink(dir_.path("outside"), dir_.path("run/checkpoints"));
    std::filesystem::create_symlink(dir_.path("outside/step-1/data"), dir_.path("run/logs/rank_0.log"));
    folder_ = make_folder_disk(dir_.path("run"));
  }
  ~FolderDiskTest() override {
    EXPECT_EQ(read_text(*make_real_disk(), dir_.path("outside/step-1/data")), "somebody else's");
  }
  std::string run(const std::string& name) const { return dir_.path("run/" + name); }

  test::TempDir dir_;
  std::unique_ptr<Disk> folder_;
};

TEST_F(FolderDiskTest, FollowsNoLinkBelowTheFolder) {
  const std::string link = "is a symbolic link";
  EXPECT_TRUE(says(complaint_of([&] { folder_->open(run("logs/rank_0.log")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->create(run("logs/rank_0.log")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->append_to(run("logs/rank_0.log")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->open(run("checkpoints/step-1/data")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->create(run("checkpoints/new")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->remove_all(run("checkpoints/step-1")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->rename(run("own"), run("checkpoints/own")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->make_directories(run("checkpoints/a/b")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->list(run("checkpoints")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->is_directory(run("checkpoints")); }), link));
  EXPECT_TRUE(says(complaint_of([&] { folder_->sync_directory(run("checkpoints")); }), link));
  folder_->remove_all(run("checkpoints"));  // the link itself
  EXPECT_FALSE(folder_->exists(run("checkpoints")));
}

TEST_F(FolderDiskTest, DoesOtherwiseWhatADiskDoes) {
  folder_->make_directories(run("a/b"));
  write_file_atomically(*folder_, run("a/b/file"), "text");
  folder_->append_to(run("a/b/file"))->append(std::as_bytes(std::span("+", 1)));
  EXPECT_EQ(read_text(*folder_, run("a/b/file")), "text+");
  folder_->rename(run("a/b"), run("a/c"));
  EXPECT_TRUE(folder_->exists(run("a/c/file")) && folder_->is_directory(run("a/c")) && !folder_->exists(run("a/b")));
  EXPECT_EQ(folder_->list(run("a")), std::vector<std::string>{"c"});
  EXPECT_EQ(folder_->create(run("a/c/file"))->size(), 0u);
  folder_->remove_all(run("a"));
  folder_->remove_all(run("absent/too"));
  EXPECT_FALSE(folder_->exists(run("a/c/file")));
  EXPECT_EQ(read_text(*folder_, dir_.path("outside/step-1/data")), "somebody else's");  // is not below the folder
}

TEST_F(FolderDiskTest, OpensRegularFilesOnlyAlsoForWriting) {
  ASSERT_EQ(::mkfifo(run("pipe").c_str(), 0600), 0);
  for (const auto& open :
       std::vector<std::function<void()>>{[&] { folder_->open(run("pipe")); }, [&] { folder_->create(run("pipe")); },
                                          [&] { folder_->append_to(run("pipe")); }})
    EXPECT_TRUE(says(complaint_of(open), "pipe: is a pipe, not a regular file"));
  EXPECT_TRUE(says(complaint_of([&] { folder_->open(run("logs")); }), "logs: is a folder, not a regular file"));
  const std::string all = complaint_of([&] { refuse_special_files(dir_.path("run")); });
  for (const char* name : {"checkpoints (a symbolic link)", "rank_0.log (a symbolic link)", "pipe (a pipe)"})
    EXPECT_TRUE(says(all, name));
  EXPECT_NO_THROW(refuse_special_files(dir_.path("outside")));
}

TEST(Host, SaysHowMuchMemoryThereIs) {
  EXPECT_GT(usable_memory_bytes(), std::size_t{1} << 20);
  EXPECT_GE(usable_memory_bytes(), peak_resident_bytes());
}

}  // namespace
}  // namespace echelon
