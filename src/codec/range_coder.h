#pragma once
// Bytes in fewer bytes, by how often each value occurs in them (asymmetric numeral systems, Duda 2013; a static table
// of 12-bit frequencies in front). Byte i belongs to state i % coder_states, and eight states go through each step
// together, as vectors. Nothing is remembered between calls.
//
// Coded bytes: how many values occur (less one); these values (a byte each) if they are at most 32, or else 256 bits; a
// 16-bit frequency for each of them; 16-bit words; the states (32 bits each) that are not at their least; and a bit
// for each state, whether it is one of these. The decoder takes the words from the last one on: for every eight bytes
// as many as their states need, the first of them for the first state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/frequencies.h"

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
