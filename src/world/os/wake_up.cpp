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

void PublishedCore::publish() { core_plus_one.store(sched_getcpu() + 1, std::memory_order_relaxed); }

bool PublishedCore::is_this_core() const {
  const std::int32_t published = core_plus_one.load(std::memory_order_relaxed);
  return published > 0 && published == sched_getcpu() + 1;
}

bool CoreMover::move_away(double now) {
  constexpr double interval = 1e-3;
  if (now < next_.load(std::memory_order_relaxed)) return false;
  next_.store(now + interval, std::memory_order_relaxed);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(sched_getcpu()), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return false;
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

bool SpinWait::spins() {
  if (spin_policy_.spin_seconds <= 0) return false;
  __builtin_ia32_pause();
  return ++count_ % 64 != 0;
}

bool SpinWait::is_spinning_over() {
  now_ = monotonic_seconds();
  if (begun_ < 0) begun_ = now_;
  return now_ >= deadline_ || now_ - begun_ >= spin_policy_.spin_seconds;
}

SpinWait::Advice SpinWait::pause() {
  if (spins()) return Advice::look_again;
  if (is_spinning_over()) return sleep_or_too_late();
  // The awaited thread may be ready to run on this very core. Not too often, for other programs may be ready as well
  // and keep the core for milliseconds.
  if (now_ - begun_ > next_yield_) {
    sched_yield();
    next_yield_ += 10e-6;
  }
  return Advice::look_again;
}

SpinWait::Advice SpinWait::pause(const PublishedCore& awaited, CoreMover& mover) {
  if (spins()) return Advice::look_again;
  if (is_spinning_over()) return sleep_or_too_late();
  if (!awaited.is_this_core()) return Advice::look_again;
  return mover.move_away(now_) ? start_again() : Advice::sleep;
}

SpinWait::Advice SpinWait::start_again() {
  count_ = 0;
  next_yield_ = first_yield;
  begun_ = now_ = monotonic_seconds();
  return now_ >= deadline_ ? Advice::too_late : Advice::look_again;
}

double SpinWait::seconds_to_sleep() { return std::min(0.1, deadline_ - now_); }

}  // namespace echelon
