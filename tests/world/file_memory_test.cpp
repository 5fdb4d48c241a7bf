#include "world/os/file_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/temp_dir.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

TEST(FileMemory, IsZeroedAndCanBeWrittenAndLeavesNoName) {
  const test::TempDir dir;
  FileMemory memory(dir.path(), 10000);
  ASSERT_EQ(memory.as<float>().size(), 2500u);
  EXPECT_EQ(std::ranges::count(memory.as<float>(), 0.0f), 2500);
  memory.as<float>()[2499] = 7;
  FileMemory moved = std::move(memory);
  EXPECT_EQ(moved.as<float>()[2499], 7);
  EXPECT_TRUE(memory.as<float>().empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(FileMemory, AFolderThatIsNotThereIsAnErrorWithItsName) {
  try {
    const FileMemory memory("/no/such/folder", 100);
    FAIL();
  } catch (const DiskError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder"), std::string::npos);
  }
}

TEST(FileMemory, ADiskWithoutRoomIsAnErrorAtOnce) {
  const test::TempDir dir;
  EXPECT_THROW(FileMemory(dir.path(), std::size_t{1} << 50), DiskError);
}

}  // namespace
}  // namespace echelon
