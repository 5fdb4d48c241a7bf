#include "world/os/short_slices.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace echelon {

namespace {

// As the kernel has it (linux/sched/types.h), which cannot be included together with <sched.h>.
struct SchedulingAttributes {
  std::uint32_t size = 48, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  // nanoseconds; runtime: of a slice
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void ask_for_short_slices() {
  constexpr std::uint64_t shortest = 100'000;
  SchedulingAttributes now;
  if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER) return;
  now.size = sizeof now, now.runtime = shortest;
  syscall(SYS_sched_setattr, 0, &now, 0);
}

}  // namespace echelon
