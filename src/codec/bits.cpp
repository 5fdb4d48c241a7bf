#include "codec/bits.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/wire.h"

namespace echelon::codecs {

namespace {

std::uint64_t word_at(const std::uint8_t* symbols) {
  std::uint64_t x;
  std::memcpy(&x, symbols, 8);
  return x;
}

constexpr std::uint64_t in_every_byte(std::uint64_t byte) { return byte * 0x0101010101010101ull; }

// The bits from `shift` on, `width` of them, of n symbols: a plane.
template <int width>
std::byte* pack_plane(const std::uint8_t* symbols, std::size_t n, int shift, std::byte* out) {
  constexpr std::size_t share = 8 / width;  // symbols in a byte
  const std::size_t bytes = (n + share - 1) / share;
  constexpr std::uint64_t mask = in_every_byte((1u << width) - 1);
  std::size_t j = 0;
  if (n == bytes * share)
    for (; j + 8 <= bytes; j += 8) {
      std::uint64_t x = 0;
      for (std::size_t k = 0; k < share; ++k) x |= ((word_at(symbols + j + k * bytes) >> shift) & mask) << (k * width);
      std::memcpy(out + j, &x, 8);
    }
  for (; j < bytes; ++j) {
    unsigned x = 0;
    for (std::size_t k = 0; k < share && j + k * bytes < n; ++k)
      x |= ((symbols[j + k * bytes] >> shift) & ((1u << width) - 1)) << (k * width);
    out[j] = static_cast<std::byte>(x);
  }
  return out + bytes;
}

// The first plane sets the symbols, the others add their bits.
template <int width>
const std::byte* unpack_plane(const std::byte* in, std::size_t n, int shift, std::uint8_t* symbols) {
  constexpr std::size_t share = 8 / width;
  const std::size_t bytes = (n + share - 1) / share;
  constexpr std::uint64_t mask = in_every_byte((1u << width) - 1);
  std::size_t j = 0;
  if (n == bytes * share)
    for (; j + 8 <= bytes; j += 8) {
      const auto x = get<std::uint64_t>(in + j);
      for (std::size_t k = 0; k < share; ++k) {
        std::uint8_t* to = symbols + j + k * bytes;
        std::uint64_t part = ((x >> (k * width)) & mask) << shift;
        if (shift > 0) part |= word_at(to);
        std::memcpy(to, &part, 8);
      }
    }
  for (; j < bytes; ++j)
    for (std::size_t k = 0; k < share && j + k * bytes < n; ++k) {
      std::uint8_t& to = symbols[j + k * bytes];
      const unsigned part = ((static_cast<unsigned>(in[j]) >> (k * width)) & ((1u << width) - 1)) << shift;
      to = static_cast<std::uint8_t>(shift > 0 ? to | part : part);
    }
  return in + bytes;
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

void pack_bits(const std::uint8_t* symbols, std::size_t n, int bits, std::byte* out) {
  if (bits == 8) {
    std::memcpy(out, symbols, n);
    return;
  }
  int shift = 0;
  if (bits & 4) out = pack_plane<4>(symbols, n, shift, out), shift += 4;
  if (bits & 2) out = pack_plane<2>(symbols, n, shift, out), shift += 2;
  if (bits & 1) pack_plane<1>(symbols, n, shift, out);
}

void unpack_bits(const std::byte* bytes, std::size_t n, int bits, std::uint8_t* symbols) {
  if (bits == 8) {
    std::memcpy(symbols, bytes, n);
    return;
  }
  int shift = 0;
  if (bits & 4) bytes = unpack_plane<4>(bytes, n, shift, symbols), shift += 4;
  if (bits & 2) bytes = unpack_plane<2>(bytes, n, shift, symbols), shift += 2;
  if (bits & 1) unpack_plane<1>(bytes, n, shift, symbols);
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
