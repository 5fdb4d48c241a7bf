#pragma once
// Mutual exclusion between the tasks of a process, for short work such as writing to the same terminal: other tasks are
// blocked meanwhile.

#include <mutex>

namespace echelon {

class Mutex {
 public:
  template <typename F>
  void take(const F& f) {
    const std::lock_guard mine(mutex_);
    f();
  }
  // Does nothing if another task has the mutex.
  template <typename F>
  void take_if_free(const F& f) {
    if (const std::unique_lock mine(mutex_, std::try_to_lock); mine) f();
  }

 private:
  std::mutex mutex_;
};

}  // namespace echelon
