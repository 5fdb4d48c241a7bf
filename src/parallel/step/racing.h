#pragma once
// Numbers that several threads read and write at once, without a lock: what Hogwild races on. Every access is a relaxed
// atomic one, so that racing is defined behaviour: a reader may see any mixture of old and new numbers, but never half
// a number, and an addition that falls between another's load and store is lost. The price: the compiler does not
// vectorise these loops.

#include <atomic>
#include <cstddef>
#include <span>

namespace echelon {

static_assert(std::atomic_ref<float>::is_always_lock_free);

inline float racing_load(const float& x) {
  return std::atomic_ref(const_cast<float&>(x)).load(std::memory_order_relaxed);
}
inline void racing_store(float& x, float value) { std::atomic_ref(x).store(value, std::memory_order_relaxed); }

inline void racing_read(std::span<const float> from, float* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = racing_load(from[i]);
}
// x += factor * change; numbers that do not change are not written.
inline void racing_add(std::span<float> x, float factor, const float* change) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (change[i] != 0) racing_store(x[i], racing_load(x[i]) + factor * change[i]);
}

}  // namespace echelon
