#pragma once
// Entropy coding of bytes by the frequencies of their values (asymmetric numeral systems, Duda 2013, with a static
// table of 12-bit frequencies in front). Byte i belongs to state i % coder_states; eight states are processed together,
// as a vector. No state is kept between calls; one instance is used by one task at a time.
//
// Format: the count of values that occur (minus one); these values (a byte each) if they are at most 32, otherwise 256
// bits; a 16-bit frequency for each of them; 16-bit words; the states (32 bits each) that are not at their minimum; and
// one bit per state that says whether it is among these. The decoder reads the words backwards: for every eight bytes
// as many as their states need, the first of them for the first state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/wire/frequencies.h"

namespace echelon::codecs {

class RangeCoder {
 public:
  // The number of bytes written, or nothing if they would not fit into `out`.
  std::optional<std::size_t> encode(std::span<const std::byte> bytes, std::span<std::byte> out);
  // Fills `out`, whose size the sender has told. Failure if `bytes` are not what `encode` writes for so many.
  void decode(std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  std::array<std::int32_t, 256> symbols_;  // of a value: its frequency - 1, and its first slot (<< 12)
  std::array<std::int32_t, frequency_sum>
      slots_{};  // a value (8 bits), how many of its slots are before, frequency - 1
};

}  // namespace echelon::codecs
