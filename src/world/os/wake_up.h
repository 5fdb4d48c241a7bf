#pragma once
// How one who waits is woken, by threads of this process or by other processes that see the same memory. Waking a
// sleeper costs 12 to 45 us here and spinning a tenth of one, so everybody spins first (`SpinWait`) and sleeps on a
// `WakeUp` (a futex) when nothing has come.
//
// The rule that no wake-up is lost: who publishes something does so with a sequentially consistent write and then calls
// `ring`; who waits looks again, with sequentially consistent reads, inside `sleep`. Ringing costs one load while
// nobody sleeps.

#include <atomic>
#include <cstdint>

namespace echelon {

// Until `word` is no longer `expected` and somebody wakes us, or the time is over, or for no reason at all.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, double seconds);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Lies in memory that both sides see. All zero is a good one.
struct WakeUp {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> asleep{0};

  void wake() {
    if (asleep.load(std::memory_order_seq_cst) != 0) wake_always();
  }
  void wake_always() {
    rings.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(rings);
  }
  // Returns when rung, when the time is over or when `ready()` is true already.
  template <typename Ready>
  void sleep(double seconds, Ready&& ready) {
    const std::uint32_t seen = rings.load(std::memory_order_seq_cst);
    asleep.fetch_add(1, std::memory_order_seq_cst);
    if (!ready()) futex_wait(rings, seen, seconds);
    asleep.fetch_sub(1, std::memory_order_seq_cst);
  }
};

// How long to try before sleeping. With more ranks than cores spinning only keeps the awaited from running, and a yield
// gives the core away for a whole slice of time if others want it too, while a sleeper is run as soon as it is woken.
struct SpinPolicy {
  double spin_seconds = 50e-6;
};
SpinPolicy spin_policy_for(int ranks);

// One wait: counts what has been tried so far.
class SpinWait {
 public:
  SpinWait(const SpinPolicy& spin_policy, double deadline) : spin_policy_(spin_policy), deadline_(deadline) {}

  enum class Advice { look_again, sleep, too_late };
  // After each look that found nothing: waits a moment, then says what to do. Reads the clock now and then.
  Advice pause();
  Advice start_again();       // something has come, though not what we wait for: spin as long again
  double seconds_to_sleep();  // until the deadline, at most a tenth of a second; only after `sleep` was advised

 private:
  static constexpr double first_yield = 5e-6;
  const SpinPolicy& spin_policy_;
  double deadline_;
  double begun_ = -1;
  double now_ = 0;
  double next_yield_ = first_yield;
  int count_ = 0;
};

double monotonic_seconds();  // what the real clock says

}  // namespace echelon
