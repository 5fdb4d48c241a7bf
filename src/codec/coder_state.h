#pragma once
// What range_coder.cpp does with one state, in plain C++, for the bytes that fill no row; the vectors there do the
// same. A state is in [2^15, 2^31): so both comparing and turning into a float are those of signed integers.

#include <cstdint>

#include "codec/frequencies.h"
#include "codec/wire.h"

namespace echelon::codecs {

inline constexpr std::size_t coder_states = 32;  // at most as many as a mask of 32 bits names
inline constexpr std::size_t coder_group = 8;    // of these: their words are together
inline constexpr std::int32_t least_state = 1 << 15;
inline constexpr std::uint32_t most_state = (1u << 31) - 1;
inline constexpr int limit_shift = 31 - frequency_bits;  // a state not below frequency << this gives a word away first
// What taking a byte for each state can write, and the rest of a vector after its last word.
inline constexpr std::size_t most_row_bytes = coder_states * sizeof(std::uint16_t) + 16;

struct CoderState {
  std::int32_t& x;

  // `symbol` as range_coder.h has them.
  void take(std::int32_t symbol, std::byte* out, std::size_t& at) {
    const std::int32_t f = (symbol & (frequency_sum - 1)) + 1, begin = symbol >> frequency_bits;
    if (x >> limit_shift >= f) {
      put(out + at, static_cast<std::uint16_t>(x));
      at += 2;
      x >>= 16;
    }
    x = ((x / f) << frequency_bits) + x % f + begin;
  }

  std::uint8_t give(const std::int32_t* slots) {
    const auto slot = static_cast<std::uint32_t>(slots[x & (frequency_sum - 1)]);
    const auto f = static_cast<std::int32_t>(slot >> (8 + frequency_bits)) + 1;
    x = f * (x >> frequency_bits) + static_cast<std::int32_t>((slot >> 8) & (frequency_sum - 1));
    return static_cast<std::uint8_t>(slot);
  }
  bool wants_word() const { return x < least_state; }
  void fill(const std::byte* words, std::size_t& at) {
    if (!wants_word()) return;
    x = (x << 16) | get<std::uint16_t>(words + at);
    at += 2;
  }
};

}  // namespace echelon::codecs
