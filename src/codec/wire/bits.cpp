#include "codec/wire/bits.h"

#include <algorithm>
#include <cstring>

#include "codec/wire/wire.h"

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

// Neither loop has anything that a compiler could not turn into vectors.
void pack_trits(const std::uint8_t* symbols, std::size_t n, std::byte* out) {
  const std::size_t fifth = packed_trits(n);
  const std::size_t full = n > 4 * fifth ? n - 4 * fifth : 0;  // so many bytes have five symbols
  const std::uint8_t *s0 = symbols, *s1 = s0 + fifth, *s2 = s1 + fifth, *s3 = s2 + fifth, *s4 = s3 + fifth;
  for (std::size_t j = 0; j < full; ++j)
    out[j] = static_cast<std::byte>(s0[j] + 3 * s1[j] + 9 * s2[j] + 27 * s3[j] + 81 * s4[j]);
  for (std::size_t j = full; j < fifth; ++j) {
    unsigned byte = 0, power = 1;
    for (std::size_t k = 0; k < 5 && j + k * fifth < n; ++k, power *= 3) byte += power * symbols[j + k * fifth];
    out[j] = static_cast<std::byte>(byte);
  }
}

void unpack_trits(const std::byte* bytes, std::size_t n, std::uint8_t* symbols) {
  const std::size_t fifth = packed_trits(n);
  std::uint8_t left[packed_trits(symbol_block)];
  std::memcpy(left, bytes, fifth);
  for (std::size_t k = 0; k < 5 && k * fifth < n; ++k) {
    const std::size_t count = std::min(fifth, n - k * fifth);
    std::uint8_t* to = symbols + k * fifth;
    if (k == 4) {
      std::memcpy(to, left, count);
      return;
    }
    for (std::size_t j = 0; j < count; ++j) {
      const auto third = static_cast<std::uint8_t>((left[j] * 171u) >> 9);  // left[j] / 3, exactly, for every byte
      to[j] = static_cast<std::uint8_t>(left[j] - 3 * third);
      left[j] = third;
    }
  }
}

}  // namespace echelon::codecs
