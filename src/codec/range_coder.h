#pragma once
// Bytes in fewer bytes, by how often each value occurs in them (asymmetric numeral systems, Duda 2013; a static table
// of 12-bit frequencies in front). Byte i belongs to state i % coder_states: while one state waits for its table or its
// multiplication, the others go on. Nothing is remembered between calls.
//
// Coded bytes: 256 bits (which values occur), a 16-bit frequency for each of them, the final states (32 bits each),
// then 16-bit words in the order in which the decoder needs them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace echelon::codecs {

inline constexpr std::size_t coder_states = 4;

class RangeCoder {
 public:
  // The number of bytes written, or nothing if they would not fit into `out`.
  std::optional<std::size_t> encode(std::span<const std::byte> bytes, std::span<std::byte> out);
  // Fills `out`, whose size the sender has told. Failure if `bytes` are not what `encode` writes for so many.
  void decode(std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  struct Symbol {
    std::uint64_t inverse = 0;            // x / frequency for any 32-bit x is the upper half of 2x * inverse
    std::uint32_t limit = 0;              // a state above this gives a word away first
    std::uint16_t begin = 0, others = 0;  // the first slot, and how many slots are not its own
  };
  std::array<Symbol, 256> symbols_;
  std::array<std::uint32_t, 4096> slots_;  // a value (8 bits), how many of its slots are before, its frequency - 1
};

}  // namespace echelon::codecs
