#pragma once
// A number that changes by itself in one worker's memory, for experiments: once, a bit of its weights after a step, or
// of what its shards contribute to the step's gradient; or that becomes no number.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace echelon {

struct BitFlip {
  int rank = 0;
  std::int64_t step = 1;  // counted from 1
  enum Of { weights, gradient, nan } of = weights;
};

inline void flip_a_bit(float& value) { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1u << 21); }

// The largest number of a gradient: a bit of a zero, which a dead unit's gradient is, would be lost in the update.
inline void spoil(BitFlip::Of how, std::span<float> gradient) {
  float& value = *std::ranges::max_element(gradient, {}, [](float g) { return std::abs(g); });
  how == BitFlip::nan ? void(value = std::numeric_limits<float>::quiet_NaN()) : flip_a_bit(value);
}

inline bool flips(const std::vector<BitFlip>& all, int rank, std::int64_t step, BitFlip::Of of) {
  return std::ranges::any_of(all, [&](const BitFlip& f) { return f.rank == rank && f.step == step && f.of == of; });
}

}  // namespace echelon
