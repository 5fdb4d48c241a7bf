// The disk in memory does what the operating system's does, and forgets on loss of power exactly what was not synced.

#include <gtest/gtest.h>

#include <cerrno>

#include "base/random.h"
#include "tests/support/temp_dir.h"
#include "world/sim/memory_disk.h"

namespace echelon {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// What a call gives, in words: its result, or the number of its error.
template <typename Call>
std::string outcome(Call&& call) {
  try {
    return call();
  } catch (const DiskError& error) {
    return "error " + std::to_string(error.error_number());
  }
}

void describe(Disk& disk, const std::string& path, std::string& out) {
  for (const std::string& name : disk.list(path)) {
    const std::string inner = path + "/" + name;
    out += inner.substr(inner.find('/', 1)) + "\n";
    if (disk.is_directory(inner))
      describe(disk, inner, out);
    else
      out += " = " + read_text(disk, inner) + "\n";
  }
}

// One random call on a few names; the same for the same `n`.
std::string call(Disk& disk, const std::string& top, const Stream& random, std::uint64_t n) {
  const auto draw = [&](std::uint32_t below, std::uint64_t which) { return random.below(below, 8 * n + which); };
  const char* const names[] = {"a", "b", "d", "d/a", "d/e", "d/e/a", "f/g"};
  const std::string path = top + "/" + names[draw(7, 0)], other = top + "/" + names[draw(7, 1)];
  return outcome([&]() -> std::string {
    switch (draw(8, 2)) {
      case 0: disk.create(path)->append(bytes("x" + std::to_string(n))); return "created";
      case 1: {
        const auto file = disk.append_to(path);
        file->append(bytes("+" + std::to_string(n)));
        return std::to_string(file->size());
      }
      case 2:
        // A directory never goes over or into another here: the errors of that differ between file systems.
        if (disk.is_directory(path) || disk.is_directory(other)) return "not tried";
        disk.rename(path, other);
        return "renamed";
      case 3: disk.make_directories(path); return "made";
      case 4: disk.remove_all(path); return "removed";
      case 5: return read_text(disk, path);
      case 6: return std::to_string(disk.exists(path)) + std::to_string(disk.is_directory(path));
      default: {
        std::string all;
        for (const std::string& name : disk.list(path)) all += name + " ";
        return all;
      }
    }
  });
}

TEST(SimDisk, DoesWhatTheOperatingSystemsDoes) {
  const auto real = make_real_disk();
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const test::TempDir dir;
    MemoryDisk memory;
    memory.make_directories("/top");
    const Stream random({seed, 0, 0, stream_layer("sim_disk_test")});
    for (std::uint64_t n = 0; n < 150; ++n)
      ASSERT_EQ(call(memory, "/top", random, n), call(*real, dir.path(), random, n))
          << "seed " << seed << " call " << n;
  }
}

TEST(SimDisk, ForgetsWhatWasNotSynced) {
  MemoryDisk disk;
  disk.make_directories("run");
  disk.sync_directory(".");
  const auto log = disk.append_to("run/log");
  log->append(bytes("one"));
  log->sync();
  disk.sync_directory("run");
  log->append(bytes(" two"));      // bytes that are not synced
  disk.create("run/new")->sync();  // a name that is not
  write_file_atomically(disk, "run/good", "all of it");
  disk.rename("run/good", "run/better");  // a rename that is not
  disk.lose_power();
  std::string all;
  describe(disk, "run", all);
  EXPECT_EQ(all, "/good\n = all of it\n/log\n = one\n/new\n = \n");  // `new` was saved with `good`'s directory
}

TEST(SimDisk, ItsCapacityIsTheEndOfIt) {
  MemoryDisk disk(10);
  const auto file = disk.create("a");
  file->append(bytes("12345678"));
  try {
    file->append(bytes("90x"));
    FAIL() << "there is no room";
  } catch (const DiskError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
  }
  EXPECT_EQ(file->size(), 8u);
  disk.remove_all("a");
  disk.create("b")->append(bytes("1234567890"));
  EXPECT_EQ(disk.used(), 10u);
}

}  // namespace
}  // namespace echelon
