#include "world/os/ahead.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"

namespace echelon {

class Ahead::Ring {
 public:
  Ring(Options options, Produce produce)
      : options_(std::move(options)),
        produce_(std::move(produce)),
        slots_(slots(options_.depth)),
        base_(options_.first),
        next_(options_.first),
        expected_(options_.first) {
    invariant(options_.depth >= 0 && options_.threads >= 1, "work ahead has a depth and a thread");
    const int threads = std::min(options_.threads, options_.depth);
    // Signals are for the thread that started the program; a new thread inherits the mask it is born with.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { run(); });
      ::pthread_setname_np(threads_.back().native_handle(), options_.name.substr(0, 15).c_str());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Ring() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (auto& t : threads_) t.join();
  }

  std::size_t take(std::uint64_t number) {
    const auto start = std::chrono::steady_clock::now();
    const std::size_t slot = number % slots_.size();
    if (threads_.empty()) {
      produce_(number, slot);
    } else {
      std::unique_lock lock(mutex_);
      if (number != expected_) start_again(number, lock);
      base_ = number;  // releases the slot of number - 1
      room_.notify_all();
      Slot& s = slots_[slot];
      ready_.wait(lock, [&] { return s.state == State::ready && s.number == number; });
      expected_ = number + 1;
      if (s.error) {
        expected_ = number + slots_.size();  // nobody's number: whatever is taken next starts again
        std::rethrow_exception(std::exchange(s.error, nullptr));
      }
    }
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return slot;
  }

  double seconds_waited() const { return waited_; }

 private:
  enum class State { empty, busy, ready };
  struct Slot {
    State state = State::empty;
    std::uint64_t number = 0;
    std::exception_ptr error;
  };

  // Items base_ .. base_ + slots - 1 may exist; the consumer holds base_ or waits for it.
  bool has_room() const { return next_ < base_ + slots_.size(); }

  void start_again(std::uint64_t number, std::unique_lock<std::mutex>& lock) {
    next_ = base_ + slots_.size();  // no new production while we wait for the current one
    ready_.wait(lock,
                [&] { return std::ranges::none_of(slots_, [](const Slot& s) { return s.state == State::busy; }); });
    std::ranges::fill(slots_, Slot{});
    next_ = number;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [&] { return stopping_ || has_room(); });
      if (stopping_) return;
      const std::uint64_t number = next_++;
      Slot& s = slots_[number % slots_.size()];
      s.state = State::busy;
      s.number = number;
      s.error = nullptr;
      lock.unlock();
      std::exception_ptr error;
      try {
        produce_(number, number % slots_.size());
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      s.error = error;
      s.state = State::ready;
      ready_.notify_all();
    }
  }

  const Options options_;
  const Produce produce_;
  mutable std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<Slot> slots_;
  std::uint64_t base_, next_, expected_;
  bool stopping_ = false;
  double waited_ = 0;  // the consumer's own
  std::vector<std::thread> threads_;
};

Ahead::Ahead(Options options, Produce produce)
    : ring_(std::make_unique<Ring>(std::move(options), std::move(produce))) {}
Ahead::~Ahead() = default;
std::size_t Ahead::take(std::uint64_t number) { return ring_->take(number); }
double Ahead::seconds_waited() const { return ring_->seconds_waited(); }

}  // namespace echelon
