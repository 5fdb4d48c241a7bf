#pragma once
// Packs small symbols, which take one byte each unpacked. With 1 to 8 bits per symbol, the bits are split into planes
// of four, two and one bits (six bits are a plane of four and a plane of two). In a plane of four the first half of the
// symbols is in the lower nibbles of the bytes and the second half in the upper ones; planes of two and one do the same
// with quarters and eighths, so that whole words are shifted and joined. Symbols 0, 1, 2 can also be packed five to a
// byte (3^5 = 243), one from each fifth of the symbols. Padding is zero. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace echelon::codecs {

// The most symbols per call: whole bytes in either packing.
inline constexpr std::size_t symbol_block = 640;

constexpr std::size_t packed_bits(std::size_t symbols, int bits) {
  if (bits == 8) return symbols;
  std::size_t bytes = 0;
  for (const int plane : {4, 2, 1})
    if (bits & plane) bytes += (symbols * static_cast<std::size_t>(plane) + 7) / 8;
  return bytes;
}
constexpr std::size_t packed_trits(std::size_t symbols) { return (symbols + 4) / 5; }

// n <= symbol_block. Exactly n symbols and packed_..(n) bytes are touched.
void pack_bits(const std::uint8_t* symbols, std::size_t n, int bits, std::byte* out);
void unpack_bits(const std::byte* bytes, std::size_t n, int bits, std::uint8_t* symbols);
void pack_trits(const std::uint8_t* symbols, std::size_t n, std::byte* out);
void unpack_trits(const std::byte* bytes, std::size_t n, std::uint8_t* symbols);  // a byte above 242 gives a symbol 3

}  // namespace echelon::codecs
