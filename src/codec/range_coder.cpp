#include "codec/range_coder.h"

#include <algorithm>

#include "codec/wire.h"

namespace echelon::codecs {

namespace {

constexpr int scale_bits = 12;
constexpr std::uint32_t scale = 1u << scale_bits;
constexpr std::uint32_t least_state = 1u << 16;  // states are in [2^16, 2^32)
constexpr std::size_t bitmap_bytes = 32, states_bytes = 8;

// Frequencies that sum to `scale`, at least 1 for what occurs.
std::array<std::uint32_t, 256> frequencies(std::span<const std::byte> bytes) {
  std::array<std::uint32_t, 4 * 256> counts{};  // four tables: equal neighbours do not wait for each other
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4)
    for (std::size_t k = 0; k < 4; ++k) ++counts[k * 256 + static_cast<std::uint8_t>(bytes[i + k])];
  for (; i < bytes.size(); ++i) ++counts[static_cast<std::uint8_t>(bytes[i])];
  std::array<std::uint32_t, 256> f{};
  std::uint32_t sum = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    const std::uint64_t count = std::uint64_t{counts[v]} + counts[256 + v] + counts[512 + v] + counts[768 + v];
    if (count > 0) f[v] = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(count * scale / bytes.size()));
    sum += f[v];
  }
  while (sum != scale) {  // the most frequent ones give or take what rounding has left
    auto& most = *std::ranges::max_element(f);
    if (sum < scale) {
      most += scale - sum;
      sum = scale;
    } else {
      const std::uint32_t off = std::min(sum - scale, most / 2);
      most -= off;
      sum -= off;
    }
  }
  return f;
}

}  // namespace

std::optional<std::size_t> RangeCoder::encode(std::span<const std::byte> bytes, std::span<std::byte> out) {
  if (bytes.empty() || out.size() < bitmap_bytes + states_bytes + 2) return std::nullopt;
  const auto f = frequencies(bytes);
  std::fill_n(out.data(), bitmap_bytes, std::byte{0});
  std::size_t at = bitmap_bytes;
  std::uint32_t begin = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    if (f[v] == 0) continue;
    if (at + 2 + states_bytes > out.size()) return std::nullopt;
    out[v / 8] |= static_cast<std::byte>(1u << (v % 8));
    put(out.data() + at, static_cast<std::uint16_t>(f[v]));
    at += 2;
    // x / f for any 32-bit x is the upper half of 2x * inverse.
    symbols_[v] = {.inverse = (std::uint64_t{1} << 63) / f[v] + 1, .frequency = f[v], .begin = begin};
    begin += f[v];
  }
  // Backwards from the end of `out`: the decoder reads what was written last first.
  const std::size_t words_from = at + states_bytes;
  if (words_from + 4 > out.size()) return std::nullopt;
  std::size_t tail = out.size();
  std::uint32_t even = least_state, odd = least_state;  // two states: while one divides, the other can go on
  const auto take = [&](std::uint32_t x, std::byte value) {
    const Symbol& s = symbols_[static_cast<std::uint8_t>(value)];
    if (x >= (std::uint64_t{s.frequency} << (32 - scale_bits))) {
      tail -= 2;
      put(out.data() + tail, static_cast<std::uint16_t>(x));
      x >>= 16;
    }
    const auto quotient =
        static_cast<std::uint32_t>((static_cast<unsigned __int128>(std::uint64_t{x} << 1) * s.inverse) >> 64);
    return (quotient << scale_bits) + (x - quotient * s.frequency) + s.begin;
  };
  std::size_t i = bytes.size();
  if (i % 2 == 1) even = take(even, bytes[--i]);  // there is room for a word: it was checked above
  for (; i > 0; i -= 2) {
    if (tail < words_from + 4) return std::nullopt;
    odd = take(odd, bytes[i - 1]);
    even = take(even, bytes[i - 2]);
  }
  put(out.data() + at, even);
  put(out.data() + at + 4, odd);
  std::memmove(out.data() + words_from, out.data() + tail, out.size() - tail);
  return words_from + (out.size() - tail);
}

void RangeCoder::decode(std::span<const std::byte> bytes, std::span<std::byte> out) {
  BytesIn in(bytes);
  const auto bitmap = in.take(bitmap_bytes);
  std::uint32_t begin = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    if ((bitmap[v / 8] & static_cast<std::byte>(1u << (v % 8))) == std::byte{0}) continue;
    const std::uint32_t f = in.take<std::uint16_t>();
    if (f == 0 || f > scale - begin) fail("the frequencies of coded bytes make no sense: {} after {}", f, begin);
    symbols_[v] = {.inverse = 0, .frequency = f, .begin = begin};
    std::fill_n(symbol_at_.begin() + begin, f, static_cast<std::uint8_t>(v));
    begin += f;
  }
  if (begin != scale) fail("the frequencies of coded bytes sum to {}, not to {}", begin, scale);
  std::uint32_t even = in.take<std::uint32_t>(), odd = in.take<std::uint32_t>();
  const auto words = in.rest();
  std::size_t at = 0;
  const auto give = [&](std::uint32_t& x) {
    const std::uint32_t slot = x & (scale - 1);
    const std::uint8_t v = symbol_at_[slot];
    const Symbol& s = symbols_[v];
    x = s.frequency * (x >> scale_bits) + slot - s.begin;
    if (x < least_state) {
      if (at + 2 > words.size()) fail("coded bytes end too early");
      x = (x << 16) | get<std::uint16_t>(words.data() + at);
      at += 2;
    }
    return static_cast<std::byte>(v);
  };
  std::size_t i = 0;
  for (; i + 2 <= out.size(); i += 2) {
    out[i] = give(even);
    out[i + 1] = give(odd);
  }
  if (i < out.size()) out[i] = give(even);
  if (at != words.size() || even != least_state || odd != least_state) fail("coded bytes do not end where they should");
}

}  // namespace echelon::codecs
