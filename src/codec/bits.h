#pragma once
// Small symbols, packed. Symbols lie one a byte; packed, a symbol takes `bits` bits (1 to 8), lowest first, or five
// symbols of 0, 1, 2 share a byte (3^5 = 243). What is left of the last byte is zero. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>

namespace echelon::codecs {

// As many symbols as are handled at once: whole bytes in either packing. Buffers for them have `symbol_slack` more.
inline constexpr std::size_t symbol_block = 640, symbol_slack = 8;

constexpr std::size_t packed_bits(std::size_t symbols, int bits) {
  return (symbols * static_cast<std::size_t>(bits) + 7) / 8;
}
constexpr std::size_t packed_trits(std::size_t symbols) { return (symbols + 4) / 5; }

// n <= symbol_block, n symbols and symbol_slack bytes that may be written to. Exactly packed_..(n) bytes are touched.
void pack_bits(std::uint8_t* symbols, std::size_t n, int bits, std::byte* out);
void unpack_bits(const std::byte* bytes, std::size_t n, int bits, std::uint8_t* symbols);
void pack_trits(std::uint8_t* symbols, std::size_t n, std::byte* out);
void unpack_trits(const std::byte* bytes, std::size_t n, std::uint8_t* symbols);  // Failure: a byte above 242

}  // namespace echelon::codecs
