#pragma once
// What the tests of the SIMD kernels share: sizes around every vector and block boundary, buffers that notice writes
// past their end, running a check under every instruction set, and comparing.

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace echelon::kernels {

inline const std::vector<std::size_t> odd_sizes = {0,  1,  2,  3,   4,   7,   8,   9,   15,   16,   17,   31,   32,  33,
                                                   63, 64, 65, 100, 127, 511, 512, 513, 1000, 1023, 1025, 4097, 9001};

// n floats with a fence on both sides, starting at an address that is not a multiple of a vector.
class Fenced {
 public:
  explicit Fenced(std::size_t n, float value = 0)
      : n_(n), memory_(std::min<std::size_t>(n, 1u << 30) + 2 * fence, guard) {
    for (std::size_t i = 0; i < n; ++i) data()[i] = value;
  }
  Fenced(const std::vector<float>& v) : Fenced(v.size()) { std::copy(v.begin(), v.end(), data()); }
  ~Fenced() {
    for (std::size_t i = 0; i < fence; ++i) {
      EXPECT_EQ(memory_[i], guard) << "write before the start";
      EXPECT_EQ(memory_[fence + n_ + i], guard) << "write past the end, n = " << n_;
    }
  }
  Fenced(const Fenced&) = default;

  float* data() { return memory_.data() + fence; }
  const float* data() const { return memory_.data() + fence; }
  float& operator[](std::size_t i) { return data()[i]; }
  float operator[](std::size_t i) const { return data()[i]; }
  std::size_t size() const { return n_; }

 private:
  static constexpr std::size_t fence = 17;
  static constexpr float guard = -12345.678f;
  std::size_t n_;
  std::vector<float> memory_;
};

inline Fenced fenced_values(std::size_t n, std::uint32_t seed, float lo = -3, float hi = 3) {
  std::mt19937 engine(seed * 7919 + static_cast<std::uint32_t>(n));
  std::uniform_real_distribution<float> uniform(lo, hi);
  Fenced v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = uniform(engine);
  return v;
}

// Runs `check` once for every instruction set that the kernels are compiled for and this machine has.
template <typename Check>
void on_every_target(Check check) {
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2, HWY_SSE4}) {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(std::string("target ") + hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// What `run` returns with vectors of sixteen numbers (AVX-512) must be, bit by bit, what it returns with vectors of
// eight (AVX2). Says so and does nothing on a machine that lacks one of them.
template <typename Run>
void expect_same_with_8_and_16_lanes(Run run) {
  std::vector<std::vector<float>> results;
  for (const std::int64_t target : {HWY_AVX3, HWY_AVX2}) {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & target) == 0) GTEST_SKIP() << "this machine has no " << hwy::TargetName(target);
    hwy::SetSupportedTargetsForTest(target);
    results.push_back(run());
    hwy::SetSupportedTargetsForTest(0);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  EXPECT_EQ(0, std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)));
}

inline bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

inline void expect_same(const Fenced& got, const Fenced& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_TRUE(same_bits(got[i], want[i]))
        << "at " << i << " of " << want.size() << ": " << got[i] << " instead of " << want[i];
}

// |got - want| <= relative * |want| + absolute; NaN equals NaN, an infinity itself.
inline bool is_close(double got, double want, double relative, double absolute) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= relative * std::fabs(want) + absolute;
}

inline void expect_close(const Fenced& got, const Fenced& want, double relative, double absolute = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_TRUE(is_close(got[i], want[i], relative, absolute))
        << "at " << i << " of " << want.size() << ": " << got[i] << " instead of " << want[i];
}

}  // namespace echelon::kernels
