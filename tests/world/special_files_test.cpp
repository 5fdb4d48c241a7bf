// What is no regular file is refused at once: nobody waits for a pipe's other end, or reads a device for ever.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "world/os/disk.h"
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

TEST(Host, SaysHowMuchMemoryThereIs) {
  EXPECT_GT(usable_memory_bytes(), std::size_t{1} << 20);
  EXPECT_GE(usable_memory_bytes(), peak_resident_bytes());
}

}  // namespace
}  // namespace echelon
