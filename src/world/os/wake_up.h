#pragma once
// Waiting for something in memory that threads of this process, or other processes, write. Waking a sleeping thread
// costs 12 to 45 us here and spinning a tenth of one, so a waiter spins first (`SpinWait`) and then sleeps on a
// `WakeUp` (a futex).
//
// No wake-up is lost if the writer publishes with a sequentially consistent write and then calls `wake`, and the
// waiter's `ready` in `sleep` looks with sequentially consistent reads. `wake` costs one load while nobody sleeps.
//
// Two ranks on one core. The kernel tends to put threads that wake each other on the same core, above all beside other
// programs; then each round of waiting costs two switches instead of a fraction of a microsecond. A waiter that finds
// itself on the core of the rank that it waits for therefore moves to another core (`CoreMover`), and if it has just
// done so it sleeps at once. It does not yield: beside other programs a yield gives the core away for milliseconds.
// docs/collectives.md has the measurements.

#include <atomic>
#include <cstdint>

namespace echelon {

// Sleeps while `word` is `expected`, until futex_wake_all or the timeout; may also return for no reason.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, double seconds);
void futex_wake_all(std::atomic<std::uint32_t>& word);

// Lies in memory that both sides see. All zero: nobody sleeps.
struct WakeUp {
  std::atomic<std::uint32_t> wakes{0};
  std::atomic<std::uint32_t> asleep{0};

  void wake() {
    if (asleep.load(std::memory_order_seq_cst) != 0) wake_always();
  }
  void wake_always() {
    wakes.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(wakes);
  }
  // Returns when woken, at the timeout, or at once if `ready()` is true already.
  template <typename Ready>
  void sleep(double seconds, Ready&& ready) {
    const std::uint32_t seen = wakes.load(std::memory_order_seq_cst);
    asleep.fetch_add(1, std::memory_order_seq_cst);
    if (!ready()) futex_wait(wakes, seen, seconds);
    asleep.fetch_sub(1, std::memory_order_seq_cst);
  }
};

// How long to spin before sleeping. With more ranks than cores spinning only keeps the rank that is waited for from
// running, and a yield may give the core away for a whole time slice, while a sleeper runs as soon as it is woken.
struct SpinPolicy {
  double spin_seconds = 50e-6;
};
SpinPolicy spin_policy_for(int ranks);

// The core that a thread runs on, for a rank to publish in memory that the others see. All zero: not known.
struct PublishedCore {
  std::atomic<std::int32_t> core_plus_one{0};
  void publish();
  bool is_this_core() const;
};

// Moves the calling thread off its core, if it may use another one: at most once a millisecond, for a move costs some
// ten microseconds. The thread may come back later: its set of allowed cores stays as it was. Thread-safe.
class CoreMover {
 public:
  bool move_away(double now);  // false: not now, or there is no other core

 private:
  std::atomic<double> next_{0};
};

// The spinning of one wait.
class SpinWait {
 public:
  SpinWait(const SpinPolicy& spin_policy, double deadline) : spin_policy_(spin_policy), deadline_(deadline) {}

  enum class Advice { look_again, sleep, too_late };
  // After each look that found nothing: waits a moment, then says what to do. Reads the clock now and then.
  Advice pause();
  // The same where it is known on which core the awaited rank runs.
  Advice pause(const PublishedCore& awaited, CoreMover& mover);
  Advice start_again();       // something arrived, though not what is waited for: spins as long again
  double seconds_to_sleep();  // until the deadline, at most a tenth of a second; only after Advice::sleep

 private:
  bool spins();             // waits a moment; false: now and then, when it is time to look at the clock
  bool is_spinning_over();  // reads the clock
  Advice sleep_or_too_late() const { return now_ >= deadline_ ? Advice::too_late : Advice::sleep; }

  static constexpr double first_yield = 5e-6;
  const SpinPolicy& spin_policy_;
  double deadline_;
  double begun_ = -1;
  double now_ = 0;
  double next_yield_ = first_yield;
  int count_ = 0;
};

double monotonic_seconds();  // of the real clock

}  // namespace echelon
