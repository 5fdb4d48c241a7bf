#pragma once
// What the sanitizers are told about switches between stacks; nothing in an ordinary build. Only fiber.cpp includes
// this: src/CMakeLists.txt compiles it without instrumentation and defines which sanitizer listens.

#include <cstddef>

#ifdef ECHELON_TELL_address
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ECHELON_TELL_thread
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

namespace echelon::sim::sanitizers {

#ifdef ECHELON_TELL_address
inline void leave_stack(void** keep, const void* to, std::size_t bytes) {
  __sanitizer_start_switch_fiber(keep, to, bytes);
}
inline void enter_stack(void* kept, const void** from, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(kept, from, bytes);
}
inline void fresh_stack(const void* bottom, std::size_t bytes) { __asan_unpoison_memory_region(bottom, bytes); }
#else
inline void leave_stack(void**, const void*, std::size_t) {}
inline void enter_stack(void*, const void**, std::size_t*) {}
inline void fresh_stack(const void*, std::size_t) {}
#endif

#ifdef ECHELON_TELL_thread
inline void* current_fiber() { return __tsan_get_current_fiber(); }
inline void* create_fiber() { return __tsan_create_fiber(0); }
inline void destroy_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
inline void* current_fiber() { return nullptr; }
inline void* create_fiber() { return nullptr; }
inline void destroy_fiber(void*) {}
inline void switch_to(void*) {}
#endif

}  // namespace echelon::sim::sanitizers
