#pragma once
// What several tasks of a process do with one thing, one after the other, such as writing to the same terminal. For
// short work: who comes meanwhile is blocked.

#include <mutex>

namespace echelon {

class Mutex {
 public:
  template <typename F>
  void take(const F& f) {
    const std::lock_guard mine(mutex_);
    f();
  }
  // Leaves it if it is somebody else's turn.
  template <typename F>
  void take_if_free(const F& f) {
    if (const std::unique_lock mine(mutex_, std::try_to_lock); mine) f();
  }

 private:
  std::mutex mutex_;
};

}  // namespace echelon
