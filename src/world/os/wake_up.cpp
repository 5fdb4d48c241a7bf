#include "world/os/wake_up.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "world/os/cores.h"

namespace echelon {

// Not FUTEX_PRIVATE: the word may lie in memory of several processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, double seconds) {
  if (seconds <= 0) return;
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(seconds);
  limit.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

SpinPolicy spin_policy_for(int ranks) {
  if (ranks <= available_cores()) return {};
  return {.spin_seconds = 0};
}

double monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

SpinWait::Advice SpinWait::pause() {
  ++count_;
  if (spin_policy_.spin_seconds > 0) {
    __builtin_ia32_pause();
    if (count_ % 64 != 0) return Advice::look_again;
  }
  now_ = monotonic_seconds();
  if (now_ >= deadline_) return Advice::too_late;
  if (begun_ < 0) begun_ = now_;
  if (now_ - begun_ >= spin_policy_.spin_seconds) return Advice::sleep;
  // The thread that is waited for may be ready to run on this core: the scheduler puts threads that wake each other
  // together. Not too often, for others may be ready as well and keep the core for milliseconds.
  if (now_ - begun_ > next_yield_) {
    sched_yield();
    next_yield_ += 10e-6;
  }
  return Advice::look_again;
}

SpinWait::Advice SpinWait::start_again() {
  count_ = 0;
  next_yield_ = first_yield;
  begun_ = now_ = monotonic_seconds();
  return now_ >= deadline_ ? Advice::too_late : Advice::look_again;
}

double SpinWait::seconds_to_sleep() { return std::min(0.1, deadline_ - now_); }

}  // namespace echelon
