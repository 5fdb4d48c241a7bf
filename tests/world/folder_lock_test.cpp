// One process at a time in a folder.

#include "world/os/folder_lock.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

TEST(FolderLock, IsFreeAgainWhenItsOwnerIsGone) {
  const test::TempDir folder;
  auto mine = lock_folder(folder.path());
  ASSERT_TRUE(mine);
  EXPECT_FALSE(lock_folder(folder.path())) << "two have it";
  mine.reset();
  EXPECT_TRUE(lock_folder(folder.path()));
}

TEST(FolderLock, KeepsNobodyAwayWhereThereIsNoFolder) { EXPECT_TRUE(lock_folder("/nowhere/at/all")); }

}  // namespace
}  // namespace echelon
