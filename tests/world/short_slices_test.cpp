#include "world/os/short_slices.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

namespace echelon {
namespace {

struct Scheduling {
  std::uint32_t policy = 0;
  std::int32_t nice = 0;
  std::uint64_t slice = 0;  // nanoseconds; 0: the usual one
};

Scheduling scheduling_of_this_thread() {
  std::array<std::byte, 48> raw{};
  Scheduling s;
  if (syscall(SYS_sched_getattr, 0, raw.data(), raw.size(), 0) != 0) return s;
  std::memcpy(&s.policy, raw.data() + 4, sizeof s.policy);
  std::memcpy(&s.nice, raw.data() + 16, sizeof s.nice);
  std::memcpy(&s.slice, raw.data() + 24, sizeof s.slice);
  return s;
}

bool kernel_has_slices() {
  utsname name{};
  int major = 0, minor = 0;
  return uname(&name) == 0 && std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 12));
}

TEST(ShortSlices, AreTheCallingThreadsOnly) {
  const Scheduling before = scheduling_of_this_thread();
  Scheduling of_thread;
  std::thread([&] {
    ask_for_short_slices();
    of_thread = scheduling_of_this_thread();
  }).join();
  EXPECT_EQ(of_thread.policy, before.policy);
  EXPECT_EQ(of_thread.nice, before.nice);
  EXPECT_EQ(scheduling_of_this_thread().slice, before.slice);
  if (kernel_has_slices() && before.policy == SCHED_OTHER) {
    EXPECT_EQ(of_thread.slice, 100'000u);
  }
}

}  // namespace
}  // namespace echelon
