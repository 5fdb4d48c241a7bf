#pragma once
// Numbers for the tests of matrix kernels: reproducible inputs, and a comparison that says where it failed.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "tensor/buffer.h"

namespace echelon::kernels::test {

// n numbers in [-scale, scale), different for each seed.
inline std::vector<float> numbers(std::int64_t n, std::uint64_t seed, float scale = 1) {
  const Stream stream({.seed = seed, .layer = stream_layer("matrix test")});
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = scale * (2 * stream.uniform(i) - 1);
  return v;
}

// |fast - ref| <= tolerance * (1 + |ref|) everywhere.
inline void expect_elements_close(const std::vector<float>& fast, const std::vector<float>& ref, float tolerance,
                                  const std::string& what) {
  ASSERT_EQ(fast.size(), ref.size()) << what;
  for (std::size_t i = 0; i < ref.size(); ++i)
    if (!(std::fabs(fast[i] - ref[i]) <= tolerance * (1 + std::fabs(ref[i]))))
      FAIL() << what << ": element " << i << " is " << fast[i] << ", the reference says " << ref[i];
}

}  // namespace echelon::kernels::test
