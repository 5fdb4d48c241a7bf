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

// Seconds of `steps` times twelve independent multiply-adds of eight or of sixteen numbers in registers.
constexpr int peak_chains = 12;

__attribute__((target("avx2,fma"), noinline)) inline double multiply_add_seconds_of_8(int steps) {
  __m256 a[peak_chains], m = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(0.001f);
  for (int k = 0; k < peak_chains; ++k) a[k] = _mm256_set1_ps(static_cast<float>(k));
  const double begin = core_time();
  for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < peak_chains; ++k) a[k] = _mm256_fmadd_ps(a[k], m, c);
    __asm__ volatile("" : "+x"(m), "+x"(c));
  }
  const double t = core_time() - begin;
  for (auto& v : a) __asm__ volatile("" ::"x"(v));
  return t;
}

__attribute__((target("avx512f"), noinline)) inline double multiply_add_seconds_of_16(int steps) {
  __m512 a[peak_chains], m = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(0.001f);
  for (int k = 0; k < peak_chains; ++k) a[k] = _mm512_set1_ps(static_cast<float>(k));
  const double begin = core_time();
  for (int i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < peak_chains; ++k) a[k] = _mm512_fmadd_ps(a[k], m, c);
    __asm__ volatile("" : "+v"(m), "+v"(c));
  }
  const double t = core_time() - begin;
  for (auto& v : a) __asm__ volatile("" ::"v"(v));
  return t;
}

// GFLOP/s of what any kernel on this core can reach at most, with the widest vectors that it has.
inline double peak_gflops() {
  if (!__builtin_cpu_supports("fma")) return 0;
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  constexpr int steps = 100000, rounds = 60;
  double times[rounds];
  for (double& t : times) t = wide ? multiply_add_seconds_of_16(steps) : multiply_add_seconds_of_8(steps);
  // Not the least: now and then a virtual machine's clock says a tenth too little.
  std::nth_element(times, times + rounds / 6, times + rounds);
  return (wide ? 32.0 : 16.0) * peak_chains * steps / times[rounds / 6] * 1e-9;
}

}  // namespace echelon::bench
