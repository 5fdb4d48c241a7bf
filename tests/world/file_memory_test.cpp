#include "world/os/file_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/resident.h"
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

TEST(FileMemory, WhatIsLetGoTakesNoMemoryAndIsStillThere) {
  const test::TempDir dir;
  FileMemory memory(dir.path(), 4 << 20);
  const std::span<float> numbers = memory.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  EXPECT_GE(test::resident_kib(numbers.data()), 4 << 10);
  FileMemory::let_go(std::as_bytes(numbers.subspan(0, numbers.size() / 2)));
  EXPECT_LE(test::resident_kib(numbers.data()), 2 << 10);
  FileMemory::let_go(std::as_bytes(numbers));
  EXPECT_LT(test::resident_kib(numbers.data()), 64);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<float>(i));
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
