#pragma once
// Small symbols, packed. Symbols lie one a byte. Packed by bits (1 to 8 each), the symbols are cut into planes of four,
// two and one bits (six bits are a plane of four and a plane of two); in a plane the first half of the symbols has the
// lower nibbles of the bytes and the second half the upper ones, and so on for quarters and eighths: whole words are
// shifted and joined, whatever the symbols. Or five symbols of 0, 1, 2 share a byte (3^5 = 243), one of each fifth of
// the symbols. What is left over is zero. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace echelon::codecs {

// As many symbols as are handled at once: whole bytes in either packing.
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
