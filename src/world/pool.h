#pragma once
// Objects that are used again and again, at addresses that stay: what is given back is taken next time, so a program
// that has reached its largest number of objects in use at once allocates nothing any more. Not thread-safe: whoever
// shares one locks.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace echelon {

template <typename T>
class Pool {
 public:
  T* take_idle() {  // null if none lies idle
    if (idle_.empty()) return nullptr;
    T* const object = idle_.back();
    idle_.pop_back();
    return object;
  }
  // An idle one as it was left, or a new one made of `arguments`.
  template <typename... Arguments>
  T& take(Arguments&&... arguments) {
    if (T* const idle = take_idle()) return *idle;
    return make(std::forward<Arguments>(arguments)...);
  }
  void give_back(T& object) { idle_.push_back(&object); }

  std::size_t size() const { return all_.size(); }  // in use and idle
  T& operator[](std::size_t number) { return *all_[number]; }

 private:
  template <typename... Arguments>
  T& make(Arguments&&... arguments) {
    all_.push_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
    if (idle_.capacity() < all_.size()) idle_.reserve(std::max<std::size_t>(8, 2 * all_.size()));  // for giving back
    return *all_.back();
  }

  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> idle_;
};

}  // namespace echelon
