#include "codec/range_coder.h"

#include <algorithm>

#include "codec/wire.h"

namespace echelon::codecs {

namespace {

constexpr int scale_bits = 12;
constexpr std::uint32_t scale = 1u << scale_bits;
constexpr std::uint32_t least_state = 1u << 16;  // states are in [2^16, 2^32)
constexpr std::size_t bitmap_bytes = 32, states_bytes = coder_states * sizeof(std::uint32_t);
constexpr std::size_t most_words = coder_states * sizeof(std::uint16_t);  // bytes that a step of every state can take

using States = std::array<std::uint32_t, coder_states>;

// Frequencies that sum to `scale`, at least 1 for what occurs.
std::array<std::uint32_t, 256> frequencies(std::span<const std::byte> bytes) {
  std::array<std::uint32_t, 4 * 256> counts{};  // four tables: equal neighbours do not wait for each other
  const std::byte* from = bytes.data();
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4)
    for (std::size_t k = 0; k < 4; ++k) ++counts[k * 256 + static_cast<std::uint8_t>(from[i + k])];
  for (; i < bytes.size(); ++i) ++counts[static_cast<std::uint8_t>(from[i])];
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
  if (bytes.empty() || out.size() < bitmap_bytes) return std::nullopt;
  const auto f = frequencies(bytes);
  std::fill_n(out.data(), bitmap_bytes, std::byte{0});
  std::size_t at = bitmap_bytes;
  std::uint32_t begin = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    if (f[v] == 0) continue;
    if (at + 2 > out.size()) return std::nullopt;
    out[v / 8] |= static_cast<std::byte>(1u << (v % 8));
    put(out.data() + at, static_cast<std::uint16_t>(f[v]));
    at += 2;
    symbols_[v] = {.inverse = (std::uint64_t{1} << 63) / f[v] + 1,
                   .limit = static_cast<std::uint32_t>((std::uint64_t{f[v]} << (32 - scale_bits)) - 1),
                   .begin = static_cast<std::uint16_t>(begin),
                   .others = static_cast<std::uint16_t>(scale - f[v])};
    begin += f[v];
  }
  // Backwards from the end of `out`: the decoder reads what was written last first.
  const std::size_t words_from = at + states_bytes;
  std::size_t tail = out.size();
  States states;
  states.fill(least_state);
  // No branches: whether a word is given away is as good as random. Every state writes one, and the next one writes
  // over it unless it was meant.
  const auto take = [&](std::uint32_t& x, std::byte value) {
    const Symbol& s = symbols_[static_cast<std::uint8_t>(value)];
    const unsigned away = x > s.limit;
    put(out.data() + tail - 2, static_cast<std::uint16_t>(x));
    tail -= 2 * away;
    x >>= 16 * away;
    const auto quotient =
        static_cast<std::uint32_t>((static_cast<unsigned __int128>(std::uint64_t{x} << 1) * s.inverse) >> 64);
    x += s.begin + quotient * s.others;  // quotient * scale + rest + begin
  };
  const std::byte* from = bytes.data();
  std::size_t i = bytes.size() / coder_states * coder_states;
  if (tail < words_from + most_words) return std::nullopt;
  for (std::size_t k = bytes.size(); k-- > i;) take(states[k - i], from[k]);
  while (i > 0) {
    if (tail < words_from + most_words) return std::nullopt;
    i -= coder_states;
    static_assert(coder_states == 4, "one by one, not in a loop: so the states stay in registers");
    take(states[3], from[i + 3]);
    take(states[2], from[i + 2]);
    take(states[1], from[i + 1]);
    take(states[0], from[i]);
  }
  put(out.data() + at, states);
  std::memmove(out.data() + words_from, out.data() + tail, out.size() - tail);
  return words_from + (out.size() - tail);
}

void RangeCoder::decode(std::span<const std::byte> bytes, std::span<std::byte> out) {
  BytesIn in(bytes);
  const auto bitmap = in.take(bitmap_bytes);
  std::uint32_t begin = 0;
  for (std::uint32_t v = 0; v < 256; ++v) {
    if ((bitmap[v / 8] & static_cast<std::byte>(1u << (v % 8))) == std::byte{0}) continue;
    const std::uint32_t f = in.take<std::uint16_t>();
    if (f == 0 || f > scale - begin) fail("the frequencies of coded bytes make no sense: {} after {}", f, begin);
    for (std::uint32_t k = 0; k < f; ++k) slots_[begin + k] = v | (k << 8) | ((f - 1) << (8 + scale_bits));
    begin += f;
  }
  if (begin != scale) fail("the frequencies of coded bytes sum to {}, not to {}", begin, scale);
  auto states = in.take<States>();
  const auto words = in.rest();
  std::size_t at = 0;
  const auto give = [&](std::uint32_t& x) {  // a word is taken from `at` unless x is large enough
    const std::uint32_t slot = slots_[x & (scale - 1)];
    x = ((slot >> (8 + scale_bits)) + 1) * (x >> scale_bits) + ((slot >> 8) & (scale - 1));
    return static_cast<std::byte>(slot);
  };
  std::byte* to = out.data();
  std::size_t i = 0;
  for (; i + coder_states <= out.size() && at + most_words <= words.size(); i += coder_states)
    for (std::size_t k = 0; k < coder_states; ++k) {
      std::uint32_t& x = states[k];
      to[i + k] = give(x);
      const unsigned wanted = x < least_state;
      const std::uint32_t filled = (x << 16) | get<std::uint16_t>(words.data() + at);
      x = wanted ? filled : x;
      at += 2 * wanted;
    }
  for (; i < out.size(); ++i) {  // the last words, one by one
    std::uint32_t& x = states[i % coder_states];
    out[i] = give(x);
    if (x >= least_state) continue;
    if (at + 2 > words.size()) fail("coded bytes end too early");
    x = (x << 16) | get<std::uint16_t>(words.data() + at);
    at += 2;
  }
  const auto done = [](std::uint32_t x) { return x == least_state; };
  if (at != words.size() || !std::ranges::all_of(states, done)) fail("coded bytes do not end where they should");
}

}  // namespace echelon::codecs
