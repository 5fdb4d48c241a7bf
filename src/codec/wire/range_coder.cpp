#include "codec/wire/range_coder.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/wire/range_coder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cstring>

#include "codec/wire/coder_state.h"
#include "codec/wire/wire.h"
#include "codec/wire/word_moves.h"
#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using Bytes = hn::Rebind<std::uint8_t, DI>;
using Words = hn::Rebind<std::uint16_t, DI>;
using WordBytes = hn::Repartition<std::uint8_t, Words>;

constexpr std::size_t vectors = coder_states / width, in_group = coder_group / width;

HWY_INLINE std::uint8_t bits_of(hn::Mask<DI> mask) {
  std::uint8_t bits[8];
  hn::StoreMaskBits(DI(), mask, bits);
  return bits[0];
}

// CoderState::take of a vector of states.
HWY_INLINE void take(VI& x, const std::int32_t* symbols, std::byte* out, std::size_t& at) {
  const VI slots = hn::Set(DI(), frequency_sum - 1);
  const VI symbol = hn::Load(DI(), symbols);
  const VI less = hn::And(symbol, slots), f = hn::Add(less, hn::Set(DI(), 1));
  const auto away = hn::Gt(hn::ShiftRight<limit_shift>(x), less);
  const auto words = hn::DemoteTo(Words(), hn::And(x, hn::Set(DI(), 0xFFFF)));
  const std::uint8_t bits = bits_of(away);
  const auto from_where = hn::LoadU(WordBytes(), word_moves.together[bits]);
  hn::StoreU(hn::TableLookupBytes(hn::BitCast(WordBytes(), words), from_where), WordBytes(),
             reinterpret_cast<std::uint8_t*>(out + at));
  at += 2 * static_cast<std::size_t>(std::popcount(bits));
  x = hn::IfThenElse(away, hn::ShiftRight<16>(x), x);
  // x / f is in [8, 2^19). Three roundings and the factor make it at most 7 parts of 2^24 too small and never too
  // large, so that the quotient is right or one too small. Adding 2^23 - 1/2 leaves it, rounded down, in the lowest
  // bits.
  const V divisor = hn::Mul(hn::ConvertTo(D(), f), set(1 + 0x1p-22f));
  const V shifted = hn::Add(hn::Div(hn::ConvertTo(D(), x), divisor), set(0x1p23f - 0.5f));
  const VI quotient = hn::And(hn::BitCast(DI(), shifted), hn::Set(DI(), 0x7FFFFF));
  const VI rest = hn::Sub(x, hn::Mul(quotient, f));
  const VI small = hn::VecFromMask(DI(), hn::Gt(rest, less));
  x = hn::Add(hn::Add(hn::ShiftLeft<frequency_bits>(quotient), rest),
              hn::Add(hn::ShiftRight<frequency_bits>(symbol), hn::And(small, hn::Sub(slots, less))));
}

// Rows of a byte for each state, from the last one to the first. Returns how far `out` is written then, or 0 if there
// is no room.
HWY_FLATTEN std::size_t take_rows(const std::uint8_t* from, std::size_t rows, const std::int32_t* symbols,
                                  std::int32_t* states, std::byte* out, std::size_t at, std::size_t room) {
  VI x[vectors];
  unrolled<vectors>([&](auto k) HWY_ATTR { x[k] = hn::LoadU(DI(), states + k * width); });
  // The symbols of some rows, one by one, before they are needed: a vector's own gathering takes longer.
  constexpr std::size_t some = 16;
  HWY_ALIGN std::int32_t here[some * coder_states];
  std::size_t ready = rows;
  while (rows-- > 0) {
    if (room - at < most_row_bytes) return 0;
    if (rows < ready) {
      const std::size_t count = ready < some ? ready : some;
      ready -= count;
      for (std::size_t i = 0; i < count * coder_states; ++i) here[i] = symbols[from[ready * coder_states + i]];
    }
    unrolled<coder_states / coder_group>([&](auto back) HWY_ATTR {
      constexpr std::size_t group = coder_states / coder_group - 1 - back;
      unrolled<in_group>([&](auto k) HWY_ATTR {
        take(x[group * in_group + k], here + (rows - ready) * coder_states + group * coder_group + k * width, out, at);
      });
    });
  }
  unrolled<vectors>([&](auto k) HWY_ATTR { hn::StoreU(x[k], DI(), states + k * width); });
  return at;
}

// table[i] for each i of a vector, each by a load of its own, for the same reason.
HWY_INLINE VI look_up(const std::int32_t* table, VI index) {
  HWY_ALIGN std::int32_t i[width];
  hn::Store(index, DI(), i);
#if HWY_TARGET == HWY_AVX2
  return VI{_mm256_setr_epi32(table[i[0]], table[i[1]], table[i[2]], table[i[3]], table[i[4]], table[i[5]], table[i[6]],
                              table[i[7]])};
#else
  return VI{_mm_setr_epi32(table[i[0]], table[i[1]], table[i[2]], table[i[3]])};
#endif
}

// CoderState::give of a group of states, and its words, which end at `words`.
HWY_INLINE void give(VI* x, const std::int32_t* slots, const std::byte*& words, std::uint8_t* to) {
  const VI ones = hn::Set(DI(), frequency_sum - 1);
  std::uint8_t bits[in_group];
  unsigned count = 0;
  unrolled<in_group>([&](auto k) HWY_ATTR {
    const auto du = hn::RebindToUnsigned<DI>();
    const VI slot = look_up(slots, hn::And(x[k], ones));
    const VI less = hn::BitCast(DI(), hn::ShiftRight<8 + frequency_bits>(hn::BitCast(du, slot)));
    const VI quotient = hn::ShiftRight<frequency_bits>(x[k]);
    x[k] = hn::Add(hn::Mul(quotient, less), hn::Add(quotient, hn::And(hn::ShiftRight<8>(slot), ones)));
    bits[k] = bits_of(hn::Lt(x[k], hn::Set(DI(), least_state)));
    count += static_cast<unsigned>(std::popcount(bits[k]));
    hn::StoreU(hn::DemoteTo(Bytes(), hn::And(slot, hn::Set(DI(), 0xFF))), Bytes(), to + k * width);
  });
  words -= 2 * count;
  const std::byte* next = words;
  unrolled<in_group>([&](auto k) HWY_ATTR {
    const hn::Full128<std::uint8_t> d;
    const auto all = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(next));
    const auto spaced = hn::TableLookupBytesOr0(all, hn::Load(d, word_moves.apart[bits[k]]));
    const hn::Full128<std::uint16_t> d16;
    hn::Vec<Words> some;
    if constexpr (width == 8)
      some = hn::BitCast(d16, spaced);
    else
      some = hn::LowerHalf(hn::BitCast(d16, spaced));
    const VI moved = hn::ShiftLeft<16>(x[k]);
    const VI filled = hn::IfThenElse(hn::Lt(x[k], hn::Set(DI(), least_state)), moved, x[k]);
    x[k] = hn::Or(filled, hn::PromoteTo(DI(), some));
    next += 2 * std::popcount(bits[k]);
  });
}

// Rows as long as there are surely words for them. Returns how many of the `at` bytes of words are left, and counts
// the rows. Reads up to 16 bytes behind the words.
HWY_FLATTEN std::size_t give_rows(const std::byte* words, std::size_t at, const std::int32_t* slots,
                                  std::int32_t* states, std::uint8_t* to, std::size_t most, std::size_t& rows) {
  VI x[vectors];
  unrolled<vectors>([&](auto k) HWY_ATTR { x[k] = hn::LoadU(DI(), states + k * width); });
  const std::byte* end = words + at;
  for (rows = 0; rows < most && end - words >= static_cast<std::ptrdiff_t>(2 * coder_states); ++rows)
    unrolled<coder_states / coder_group>([&](auto group) HWY_ATTR {
      give(x + group * in_group, slots, end, to + rows * coder_states + group * coder_group);
    });
  unrolled<vectors>([&](auto k) HWY_ATTR { hn::StoreU(x[k], DI(), states + k * width); });
  return static_cast<std::size_t>(end - words);
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace echelon::codecs {

HWY_EXPORT(take_rows);
HWY_EXPORT(give_rows);

namespace {

constexpr std::size_t few_values = 32, bitmap_bytes = 32;
using States = std::array<std::int32_t, coder_states>;
using Values = std::array<std::uint8_t, 256>;

// What occurs, in rising order: read from the front of the coded bytes.
std::span<const std::uint8_t> read_values(BytesIn& in, Values& values) {
  const std::size_t count = in.take<std::uint8_t>() + std::size_t{1};
  std::size_t found = 0;
  if (count <= few_values) {
    for (const std::byte value : in.take(count)) values[found++] = static_cast<std::uint8_t>(value);
    for (std::size_t k = 1; k < count; ++k)
      if (values[k] <= values[k - 1]) fail("the values of coded bytes do not rise");
    return std::span(values).first(count);
  }
  const auto bitmap = in.take(bitmap_bytes);
  for (std::size_t v = 0; v < 256; ++v)
    if ((bitmap[v / 8] & static_cast<std::byte>(1u << (v % 8))) != std::byte{0})
      values[found++] = static_cast<std::uint8_t>(v);
  if (found != count) fail("coded bytes have {} values, not {}", found, count);
  return std::span(values).first(count);
}

// The states at the end of the coded bytes, which are taken off.
States read_states(std::span<const std::byte>& rest) {
  const auto take = [&] {
    if (rest.size() < 4) fail("coded bytes have no room for their states");
    const auto word = get<std::uint32_t>(rest.data() + rest.size() - 4);
    rest = rest.first(rest.size() - 4);
    return word;
  };
  States states;
  states.fill(least_state);
  const std::uint32_t told = take();
  for (std::size_t k = coder_states; k-- > 0;) {
    if ((told >> k & 1) == 0) continue;
    const std::uint32_t x = take();
    if (x <= least_state || x > most_state) fail("a state of coded bytes is out of range: {}", x);
    states[k] = static_cast<std::int32_t>(x);
  }
  return states;
}

}  // namespace

std::optional<std::size_t> RangeCoder::encode(std::span<const std::byte> bytes, std::span<std::byte> out) {
  if (bytes.empty()) return std::nullopt;
  const auto f = frequencies(bytes);
  const auto count = static_cast<std::size_t>(std::ranges::count_if(f, [](std::uint32_t x) { return x > 0; }));
  const std::size_t listed = 1 + (count <= few_values ? count : bitmap_bytes);
  std::size_t at = listed + 2 * count;
  if (out.size() < at) return std::nullopt;
  std::fill_n(out.data(), listed, std::byte{0});
  out[0] = static_cast<std::byte>(count - 1);
  std::uint32_t begin = 0;
  for (std::size_t v = 0, k = 0; v < 256; ++v) {
    if (f[v] == 0) continue;
    if (count <= few_values)
      out[1 + k] = static_cast<std::byte>(v);
    else
      out[1 + v / 8] |= static_cast<std::byte>(1u << (v % 8));
    put(out.data() + listed + 2 * k++, static_cast<std::uint16_t>(f[v]));
    symbols_[v] = static_cast<std::int32_t>((f[v] - 1) | (begin << frequency_bits));
    begin += f[v];
  }
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  States states;
  states.fill(least_state);
  const std::size_t rows = bytes.size() / coder_states;
  std::size_t group = (bytes.size() + coder_group - 1) / coder_group;  // from the last one to the first
  for (; group > rows * (coder_states / coder_group); --group) {
    if (out.size() - at < most_row_bytes) return std::nullopt;
    const std::size_t first = (group - 1) * coder_group;
    for (std::size_t k = first; k < std::min(first + coder_group, bytes.size()); ++k)
      CoderState{states[k % coder_states]}.take(symbols_[from[k]], out.data(), at);
  }
  at = HWY_DYNAMIC_DISPATCH(take_rows)(from, rows, symbols_.data(), states.data(), out.data(), at, out.size());
  if (at == 0 || out.size() - at < sizeof(states) + 4) return std::nullopt;
  std::uint32_t told = 0;
  for (std::size_t k = 0; k < coder_states; ++k) {
    if (states[k] == least_state) continue;
    put(out.data() + at, states[k]);
    at += 4;
    told |= 1u << k;
  }
  put(out.data() + at, told);
  return at + 4;
}

void RangeCoder::decode(std::span<const std::byte> bytes, std::span<std::byte> out) {
  BytesIn in(bytes);
  Values room;
  std::uint32_t begin = 0;
  for (const std::uint32_t v : read_values(in, room)) {
    const std::uint32_t f = in.take<std::uint16_t>();
    if (f == 0 || f > frequency_sum - begin)
      fail("the frequencies of coded bytes make no sense: {} after {}", f, begin);
    for (std::uint32_t k = 0; k < f; ++k)
      slots_[begin + k] = static_cast<std::int32_t>(v | (k << 8) | ((f - 1) << (8 + frequency_bits)));
    begin += f;
  }
  if (begin != frequency_sum) fail("the frequencies of coded bytes sum to {}, not to {}", begin, frequency_sum);
  const auto rest = in.rest();
  auto words = rest;
  States states = read_states(words);
  auto* to = reinterpret_cast<std::uint8_t*>(out.data());
  std::size_t rows = 0, at = words.size();
  if (rest.size() - at >= 16)  // so much may be read behind the words
    at = HWY_DYNAMIC_DISPATCH(give_rows)(words.data(), at, slots_.data(), states.data(), to, out.size() / coder_states,
                                         rows);
  for (std::size_t i = rows * coder_states; i < out.size(); i += coder_group) {
    const std::size_t end = std::min(i + coder_group, out.size());
    std::size_t wanted = 0;
    for (std::size_t k = i; k < end; ++k) {
      CoderState state{states[k % coder_states]};
      to[k] = state.give(slots_.data());
      wanted += state.wants_word() ? 2 : 0;
    }
    if (wanted > at) fail("coded bytes end too early");
    at -= wanted;
    std::size_t next = at;
    for (std::size_t k = i; k < end; ++k) CoderState{states[k % coder_states]}.fill(words.data(), next);
  }
  const auto done = [](std::int32_t x) { return x == least_state; };
  if (at != 0 || !std::ranges::all_of(states, done)) fail("coded bytes do not end where they should");
}

}  // namespace echelon::codecs
#endif
