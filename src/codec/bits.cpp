#include "codec/bits.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/wire.h"

namespace echelon::codecs {

namespace {

// Eight symbols of k bits, one a byte, moved together in three steps: pairs, fours, all eight.
std::uint64_t squeezed(std::uint64_t x, int k) {
  const int gap = 8 - k;
  x = (x & 0x00FF00FF00FF00FFull) | ((x & 0xFF00FF00FF00FF00ull) >> gap);
  x = (x & 0x0000FFFF0000FFFFull) | ((x & 0xFFFF0000FFFF0000ull) >> (2 * gap));
  return (x & 0x00000000FFFFFFFFull) | ((x & 0xFFFFFFFF00000000ull) >> (4 * gap));
}

std::uint64_t spread(std::uint64_t x, int k) {
  const auto low = [](int bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; };
  const int gap = 8 - k;
  x = (x & low(4 * k)) | ((x & (low(4 * k) << (4 * k))) << (4 * gap));
  const std::uint64_t pairs = low(2 * k) | (low(2 * k) << 32);
  x = (x & pairs) | ((x & (pairs << (2 * k))) << (2 * gap));
  const std::uint64_t ones = low(k) * 0x0001000100010001ull;
  return (x & ones) | ((x & (ones << k)) << gap);
}

// The first five bytes of the product's upper half are carry-free: symbols are at most 2, 2 * (1 + 3 + ... + 81) = 242.
constexpr std::uint64_t powers_of_three = (1ull << 32) | (3ull << 24) | (9ull << 16) | (27ull << 8) | 81ull;

constexpr std::array<std::uint64_t, 243> trits_of = [] {
  std::array<std::uint64_t, 243> table{};
  for (std::uint64_t byte = 0; byte < 243; ++byte)
    for (std::uint64_t left = byte, i = 0; i < 5; ++i, left /= 3) table[byte] |= (left % 3) << (8 * i);
  return table;
}();

}  // namespace

void pack_bits(std::uint8_t* symbols, std::size_t n, int bits, std::byte* out) {
  std::memset(symbols + n, 0, symbol_slack);
  const auto k = static_cast<std::size_t>(bits), whole = packed_bits(n, bits);
  std::size_t i = 0, at = 0;
  for (; at + 8 <= whole; i += 8, at += k) {  // writes 8 bytes of which k count; the next ones cover the others
    std::uint64_t x;
    std::memcpy(&x, symbols + i, 8);
    x = squeezed(x, bits);
    std::memcpy(out + at, &x, 8);
  }
  for (; at < whole; i += 8, at += k) {
    std::uint64_t x;
    std::memcpy(&x, symbols + i, 8);
    x = squeezed(x, bits);
    std::memcpy(out + at, &x, std::min(k, whole - at));
  }
}

void unpack_bits(const std::byte* bytes, std::size_t n, int bits, std::uint8_t* symbols) {
  const auto k = static_cast<std::size_t>(bits), whole = packed_bits(n, bits);
  std::size_t i = 0, at = 0;
  for (; i < n && at + 8 <= whole; i += 8, at += k) {
    const std::uint64_t x = spread(get<std::uint64_t>(bytes + at), bits);
    std::memcpy(symbols + i, &x, 8);
  }
  for (; i < n; i += 8, at += k) {
    std::uint64_t x = 0;
    std::memcpy(&x, bytes + at, std::min(k, whole - at));
    x = spread(x, bits);
    std::memcpy(symbols + i, &x, 8);
  }
}

void pack_trits(std::uint8_t* symbols, std::size_t n, std::byte* out) {
  std::memset(symbols + n, 0, symbol_slack);
  for (std::size_t i = 0; i < n; i += 5, ++out) {
    std::uint64_t x;
    std::memcpy(&x, symbols + i, 8);
    *out = static_cast<std::byte>(((x & 0xFFFFFFFFFFull) * powers_of_three) >> 32);
  }
}

void unpack_trits(const std::byte* bytes, std::size_t n, std::uint8_t* symbols) {
  for (std::size_t i = 0; i < n; i += 5, ++bytes) {
    const auto byte = static_cast<std::uint8_t>(*bytes);
    if (byte >= trits_of.size()) fail("an encoded byte is {}, which no five symbols give", byte);
    std::memcpy(symbols + i, &trits_of[byte], 8);
  }
}

}  // namespace echelon::codecs
