#pragma once
// Bytes in fewer bytes, by how often each value occurs in them (asymmetric numeral systems, Duda 2013; a static table
// of 12-bit frequencies in front, two interleaved states). Nothing is remembered between calls.
//
// Coded bytes: 256 bits (which values occur), a 16-bit frequency for each of them, the two final states (32 bits each),
// then 16-bit words in the order in which the decoder needs them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace echelon::codecs {

class RangeCoder {
 public:
  // The number of bytes written, or nothing if they would not fit into `out`.
  std::optional<std::size_t> encode(std::span<const std::byte> bytes, std::span<std::byte> out);
  // Fills `out`, whose size the sender has told. Failure if `bytes` are not what `encode` writes for so many.
  void decode(std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  struct Symbol {
    std::uint64_t inverse = 0;
    std::uint32_t frequency = 0, begin = 0;
  };
  std::array<Symbol, 256> symbols_;
  std::array<std::uint8_t, 4096> symbol_at_;
};

}  // namespace echelon::codecs
