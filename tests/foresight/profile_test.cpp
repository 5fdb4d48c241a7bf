#include "foresight/costs/profile.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "world/sim/memory_disk.h"

namespace echelon::foresight {

namespace {

Profile some_profile() {
  Profile p = empty_profile();
  p.ops.roofline = {1e10, 2e10};
  p.ops.set("conv2d 5x5", "f32[8] -> f32[8]", {{1e-3, 1.5e-3}, 1e6, 2e5});
  p.links[2] = {.latency = 1e-6, .per_byte = 1e-9};
  p.wires[2] = {1e-5, 2e-5};
  p.hosts[{"a", "b"}] = {1e-5, 1e-9};
  return p;
}

TEST(Profile, ComesBackAsItWasWritten) {
  const Profile p = some_profile();
  EXPECT_TRUE(parse_profile(profile_text(p), "here") == p);
}

TEST(Profile, IsKeptInAFileOfTheUsers) {
  MemoryDisk disk;
  std::string note;
  EXPECT_EQ(load_profile(disk, "cache", note).ops.size(), 0u);
  save_profile(disk, "cache", some_profile());
  EXPECT_TRUE(load_profile(disk, "cache", note) == some_profile());
  EXPECT_EQ(note, "");
}

TEST(Profile, OfAnotherMachineCountsAsNone) {
  MemoryDisk disk;
  Profile other = some_profile();
  other.processor += " but another one";
  save_profile(disk, "cache", other);
  std::string note;
  EXPECT_EQ(load_profile(disk, "cache", note).ops.size(), 0u);
  EXPECT_NE(note.find("another machine"), std::string::npos);
}

TEST(Profile, WhatIsNoneIsRefusedWithAReason) {
  const std::string good = profile_text(some_profile());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& bad : {std::string("{}"), std::string("[1"), with("\"version\":3", "\"version\":1"),
                                 with("0.001", "-1"), with("\"cores\"", "\"kernels\""), with("0.001", "\"quick\""),
                                 with("\"ops\":[", "\"ops\":[3,"), with("\"alone\":0.001", "\"alone\":1e300")})
    EXPECT_THROW(parse_profile(bad, "here"), BadInput) << bad;
  MemoryDisk disk;
  save_profile(disk, "cache", some_profile());
  write_file_atomically(disk, "cache/profile.json", "broken");
  std::string note;
  EXPECT_EQ(load_profile(disk, "cache", note).ops.size(), 0u);
  EXPECT_NE(note, "");
}

}  // namespace

}  // namespace echelon::foresight
