#pragma once
// One state of range_coder.cpp in plain C++, for the bytes that do not fill a row; the vectors there do the same. A
// state is in [2^15, 2^31), so that comparisons and conversions to float can be those of signed integers.

#include <cstdint>

#include "codec/wire/frequencies.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

inline constexpr std::size_t coder_states = 32;  // a mask of 32 bits has one bit for each
inline constexpr std::size_t coder_group = 8;    // states whose words are adjacent
inline constexpr std::int32_t least_state = 1 << 15;
inline constexpr std::uint32_t most_state = (1u << 31) - 1;
inline constexpr int limit_shift = 31 - frequency_bits;  // a state of at least frequency << this writes a word first
// The most bytes that encoding one byte per state writes, including the rest of a vector after the last word.
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
