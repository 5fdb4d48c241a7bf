#pragma once
// The clock and the yardstick of the kernel benches: best-of-several times, and the core's multiply-add peak. Times are
// the thread's own on the core, so that others on the machine disturb only the caches.

#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <functional>

namespace echelon::bench {

inline double core_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The shortest of many measurements, each of at least a tenth of a millisecond; the others were disturbed.
inline double best_seconds(const std::function<void()>& run, double total = 0.15) {
  run();
  double begin = core_time();
  run();
  const int repeats = static_cast<int>(1e-4 / (core_time() - begin)) + 1;
  double best = 1e30, spent = 0;
  for (int round = 0; round < 5 || spent < total; ++round) {
    begin = core_time();
    for (int k = 0; k < repeats; ++k) run();
    const double t = core_time() - begin;
    best = std::min(best, t / repeats);
    spent += t;
  }
  return best;
}

// GFLOP/s of independent 8-lane multiply-adds in registers; of what any kernel on this core can reach at most.
__attribute__((target("avx2,fma"), noinline)) inline double peak_gflops() {
  if (!__builtin_cpu_supports("fma")) return 0;
  constexpr int chains = 12, steps = 20000;
  double best = 0;
  for (int round = 0; round < 200; ++round) {
    __m256 a[chains];
    for (int k = 0; k < chains; ++k) a[k] = _mm256_set1_ps(static_cast<float>(k));
    __m256 m = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(0.001f);
    const double begin = core_time();
    for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 12
      for (int k = 0; k < chains; ++k) a[k] = _mm256_fmadd_ps(a[k], m, c);
      __asm__ volatile("" : "+x"(m), "+x"(c));
    }
    const double t = core_time() - begin;
    for (auto& v : a) __asm__ volatile("" ::"x"(v));
    best = std::max(best, 16.0 * chains * steps / t / 1e9);
  }
  return best;
}

}  // namespace echelon::bench
