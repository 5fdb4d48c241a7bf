#include "data/files/hash_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace echelon::data {
namespace {

class HashCacheTest : public testing::Test {
 protected:
  HashCacheTest() {
    write_file_atomically(*disk_, file_, "content");
    cache_ = {.folder = dir_.path("cache"), .least_bytes = 1, .settled_ns = 0};
  }
  // How often it was computed in one call.
  int computed() {
    int times = 0;
    EXPECT_EQ(cached_hash(*disk_, cache_, {file_}, [&] { return ++times, hash_; }), hash_);
    return times;
  }

  const test::TempDir dir_;
  const std::unique_ptr<Disk> disk_ = make_real_disk();
  const std::string file_ = dir_.path("data");
  std::string hash_ = std::string(64, 'a');
  HashCache cache_;
};

TEST_F(HashCacheTest, AHashIsKeptWhileTheFilesAreTheSame) {
  EXPECT_EQ(computed(), 1);
  EXPECT_EQ(computed(), 0);
  hash_ = std::string(64, 'b');
  const auto before = std::filesystem::last_write_time(file_);
  write_file_atomically(*disk_, file_, "CONTENT");  // as long, and dated back
  std::filesystem::last_write_time(file_, before);
  EXPECT_EQ(computed(), 1);
  EXPECT_EQ(computed(), 0);
}

TEST_F(HashCacheTest, WhatIsInDoubtIsComputedAgain) {
  cache_.settled_ns = std::int64_t{3600} * 1'000'000'000;  // the file is younger than that
  EXPECT_EQ(computed() + computed(), 2);
  cache_.settled_ns = 0;
  cache_.least_bytes = 1000;  // and smaller than that
  EXPECT_EQ(computed() + computed(), 2);
  cache_.least_bytes = 1;
  EXPECT_EQ(computed() + computed(), 1);
  for (const auto& entry : std::filesystem::directory_iterator(cache_.folder))
    write_file_atomically(*disk_, entry.path().string(), "{\"stamps\":");
  EXPECT_EQ(computed(), 1);
  cache_.folder.clear();
  EXPECT_EQ(computed() + computed(), 2);
}

}  // namespace
}  // namespace echelon::data
