#pragma once
// What tests of messages share: a deadline that never comes, a label, bytes to send, a check inside a rank.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "world/label.h"

namespace echelon::test {

constexpr double forever = std::numeric_limits<double>::infinity();

inline Label label(std::uint32_t number, OperationKind kind = OperationKind::plain) {
  return {.kind = kind, .number = number};
}

// For programs: some ranks are processes of their own, in which GoogleTest's macros are of no use.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw Failure("the test requires: " + what);
}

// Different for each seed.
inline std::vector<std::byte> random_bytes(std::size_t bytes, int seed) {
  std::vector<std::byte> v(bytes);
  const Stream stream({.seed = static_cast<std::uint64_t>(seed)});
  for (std::size_t i = 0; i < bytes; ++i) v[i] = static_cast<std::byte>(stream.bits(i / 64) >> (i % 4 * 8));
  return v;
}

}  // namespace echelon::test
