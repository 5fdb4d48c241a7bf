#include "codec/kernels/levels.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/levels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using DS = hn::Rebind<std::int16_t, D>;

// The words of Noise from `position` on.
HWY_INLINE VU noise_words(const Noise& noise, std::size_t position) {
  const VU start = hn::Set(DU(), static_cast<std::uint32_t>(position) + noise.before);
  VU x = hn::Add(start, hn::Iota(DU(), 0));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(DU(), 0x21F0AAADu));
  x = hn::Mul(hn::Xor(hn::Xor(x, hn::Set(DU(), noise.between)), hn::ShiftRight<15>(x)), hn::Set(DU(), 0xD35A2D97u));
  return hn::Xor(x, hn::ShiftRight<15>(x));
}
HWY_INLINE VI low_half(VU words) { return hn::BitCast(DI(), hn::And(words, hn::Set(DU(), 0xFFFF))); }
HWY_INLINE VI high_half(VU words) { return hn::BitCast(DI(), hn::ShiftRight<16>(words)); }

// Calls f(numbers, levels, how many numbers before) for groups of `count` numbers; the last one through memory of its
// own, filled up with zeros.
template <std::size_t count, typename Out, class F>
HWY_INLINE void for_each_group(const float* x, std::size_t n, Out* out, bool whole, const F& f) {
  std::size_t i = 0;
  for (; i + count <= n; i += count) f(x + i, out + i, i);
  if (i == n) return;
  HWY_ALIGN float in[count] = {};
  HWY_ALIGN Out rest[count];
  std::memcpy(in, x + i, (n - i) * sizeof(float));
  f(in, rest, i);
  std::memcpy(out + i, rest, (whole ? count : n - i) * sizeof(Out));
}

// Four levels, each in bits 16 to 23 of its lane, become the bytes of one word.
HWY_INLINE VU four_bytes(VI a, VI b, VI c, VI d) {
  const VU byte = hn::Set(DU(), 0x00FF0000u);
  const auto bits = [&](VI v) HWY_ATTR { return hn::And(hn::BitCast(DU(), v), byte); };
  return hn::Or(hn::Or(hn::ShiftRight<16>(bits(a)), hn::ShiftRight<8>(bits(b))),
                hn::Or(bits(c), hn::ShiftLeft<8>(bits(d))));
}

HWY_FLATTEN void to_levels(const float* x, std::size_t n, const Grid& grid, const Noise& noise, std::size_t first,
                           std::uint8_t* levels) {
  // In units of 2^-16 of a level: the noise is added as an integer, and the level is what is above them.
  const V multiply = set(grid.multiply * 0x1p16f), add = set(grid.add * 0x1p16f),
          top = set(static_cast<float>(grid.top) * 0x1p16f), zero = hn::Zero(D());
  for_each_group<level_group>(x, n, levels, true, [&](const float* in, std::uint8_t* out, std::size_t i) HWY_ATTR {
    unrolled<8 / width>([&](auto k) HWY_ATTR {
      const auto level = [&](std::size_t at) HWY_ATTR {
        const V y = hn::Add(hn::Mul(hn::LoadU(D(), in + at + k * width), multiply), add);
        return hn::ConvertTo(DI(), hn::Min(hn::Max(y, zero), top));  // in this order a NaN becomes 0
      };
      const VU front = noise_words(noise, first + i / 2 + k * width);
      const VU back = noise_words(noise, first + i / 2 + 8 + k * width);
      const VU word = four_bytes(hn::Add(level(0), low_half(front)), hn::Add(level(8), high_half(front)),
                                 hn::Add(level(16), low_half(back)), hn::Add(level(24), high_half(back)));
      hn::StoreU(hn::BitCast(hn::Repartition<std::uint8_t, DU>(), word), hn::Repartition<std::uint8_t, DU>(),
                 out + 4 * k * width);
    });
  });
}

HWY_FLATTEN void to_int16(const float* x, std::size_t n, float factor, const Noise& noise, std::size_t first,
                          std::int16_t* numbers) {
  const V multiply = set(factor * 0x1p16f), least = set(-0x1p31f), most = set(32767 * 0x1p16f);
  for_each_group<16>(x, n, numbers, false, [&](const float* in, std::int16_t* out, std::size_t i) HWY_ATTR {
    unrolled<8 / width>([&](auto k) HWY_ATTR {
      const auto rounded = [&](std::size_t at, VI random) HWY_ATTR {
        const V y = hn::Min(hn::Max(hn::Mul(hn::LoadU(D(), in + at + k * width), multiply), least), most);
        const VI number = hn::ShiftRight<16>(hn::Add(hn::ConvertTo(DI(), hn::Floor(y)), random));
        hn::StoreU(hn::DemoteTo(DS(), number), DS(), out + at + k * width);
      };
      const VU words = noise_words(noise, first + i / 2 + k * width);
      rounded(0, low_half(words));
      rounded(8, high_half(words));
    });
  });
}

HWY_FLATTEN void nearest_int16(const float* x, std::size_t n, float factor, std::int16_t* numbers) {
  const V multiply = set(factor), least = set(-32768), most = set(32767);
  for_each_group<16>(x, n, numbers, false, [&](const float* in, std::int16_t* out, std::size_t) HWY_ATTR {
    unrolled<16 / width>([&](auto k) HWY_ATTR {
      const V y = hn::Min(hn::Max(hn::Mul(hn::LoadU(D(), in + k * width), multiply), least), most);
      hn::StoreU(hn::DemoteTo(DS(), hn::NearestInt(y)), DS(), out + k * width);
    });
  });
}

HWY_FLATTEN void to_classes(const float* x, std::size_t n, float threshold, std::uint8_t* levels) {
  const V high = set(threshold), low = set(-threshold);
  const VI one = hn::Set(DI(), 1 << 16);
  for_each_group<level_group>(x, n, levels, true, [&](const float* in, std::uint8_t* out, std::size_t) HWY_ATTR {
    unrolled<8 / width>([&](auto k) HWY_ATTR {
      const auto level = [&](std::size_t at) HWY_ATTR {
        const V y = hn::LoadU(D(), in + at + k * width);
        const VI above = hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Ge(y, high)));
        const VI below = hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Le(y, low)));
        return hn::Add(one, hn::Sub(hn::And(above, one), hn::And(below, one)));
      };
      const VU word = four_bytes(level(0), level(8), level(16), level(24));
      hn::StoreU(hn::BitCast(hn::Repartition<std::uint8_t, DU>(), word), hn::Repartition<std::uint8_t, DU>(),
                 out + 4 * k * width);
    });
  });
}

template <bool add>
HWY_INLINE void from_levels(const std::uint8_t* levels, float base, float step, float* out, std::size_t n) {
  const V b = set(base), s = set(step);
  const hn::Repartition<std::uint8_t, DU> bytes;
  const VU byte = hn::Set(DU(), 0xFF);
  const auto spread = [&](const std::uint8_t* from, float* to) HWY_ATTR {
    unrolled<8 / width>([&](auto k) HWY_ATTR {
      const VU word = hn::BitCast(DU(), hn::LoadU(bytes, from + 4 * k * width));
      const auto put = [&](std::size_t at, VU level) HWY_ATTR {
        float* p = to + at + k * width;
        const V v = hn::Add(hn::Mul(hn::ConvertTo(D(), hn::BitCast(DI(), level)), s), b);
        hn::StoreU(add ? hn::Add(hn::LoadU(D(), p), v) : v, D(), p);
      };
      put(0, hn::And(word, byte));
      put(8, hn::And(hn::ShiftRight<8>(word), byte));
      put(16, hn::And(hn::ShiftRight<16>(word), byte));
      put(24, hn::ShiftRight<24>(word));
    });
  };
  std::size_t i = 0;
  for (; i + level_group <= n; i += level_group) spread(levels + i, out + i);
  if (i == n) return;
  HWY_ALIGN float rest[level_group] = {};
  std::memcpy(rest, out + i, (n - i) * sizeof(float));
  spread(levels + i, rest);
  std::memcpy(out + i, rest, (n - i) * sizeof(float));
}

template <bool add>
HWY_INLINE void from_int16(const std::int16_t* numbers, float step, float* out, std::size_t n) {
  const V s = set(step);
  const auto value = [&](hn::Vec<DS> number)
                         HWY_ATTR { return hn::Mul(hn::ConvertTo(D(), hn::PromoteTo(DI(), number)), s); };
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    const V v = value(hn::LoadU(DS(), numbers + i));
    hn::StoreU(add ? hn::Add(hn::LoadU(D(), out + i), v) : v, D(), out + i);
  }
  if (i == n) return;
  HWY_ALIGN std::int16_t rest[width] = {};
  std::memcpy(rest, numbers + i, (n - i) * sizeof(std::int16_t));
  const V v = value(hn::Load(DS(), rest));
  store_n(add ? hn::Add(load_n(out + i, n - i), v) : v, out + i, n - i);
}

HWY_FLATTEN void levels_add(const std::uint8_t* x, float base, float step, float* out, std::size_t n) {
  from_levels<true>(x, base, step, out, n);
}
HWY_FLATTEN void levels_set(const std::uint8_t* x, float base, float step, float* out, std::size_t n) {
  from_levels<false>(x, base, step, out, n);
}
HWY_FLATTEN void int16_add(const std::int16_t* x, float step, float* out, std::size_t n) {
  from_int16<true>(x, step, out, n);
}
HWY_FLATTEN void int16_set(const std::int16_t* x, float step, float* out, std::size_t n) {
  from_int16<false>(x, step, out, n);
}

HWY_FLATTEN void measure(const float* x, std::size_t n, double (&sums)[2], float& largest) {
  VI most = hn::Zero(DI());  // the magnitudes' bits order as they do, and a NaN is above all of them
  blocked_sums(
      n,
      [&](auto at, V(&v)[2]) HWY_ATTR {
        const V a = at.load(x);
        v[0] = a;
        v[1] = hn::Mul(a, a);
        most = hn::Max(most, hn::BitCast(DI(), hn::Abs(a)));
      },
      sums);
  HWY_ALIGN float lanes[width];
  hn::Store(hn::BitCast(D(), hn::MaxOfLanes(DI(), most)), D(), lanes);
  largest = lanes[0];
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace echelon::codecs {

HWY_EXPORT(measure);
HWY_EXPORT(to_levels);
HWY_EXPORT(to_int16);
HWY_EXPORT(nearest_int16);
HWY_EXPORT(to_classes);
HWY_EXPORT(levels_add);
HWY_EXPORT(levels_set);
HWY_EXPORT(int16_add);
HWY_EXPORT(int16_set);

Moments moments(std::span<const float> x) {
  Moments m;
  double sums[2] = {};
  HWY_DYNAMIC_DISPATCH(measure)(x.data(), x.size(), sums, m.largest);
  m.sum = sums[0];
  m.squares = sums[1];
  return m;
}

void round_to_levels(std::span<const float> x, const Grid& grid, const Noise& noise, std::size_t first,
                     std::uint8_t* levels) {
  HWY_DYNAMIC_DISPATCH(to_levels)(x.data(), x.size(), grid, noise, first, levels);
}
void classify(std::span<const float> x, float threshold, std::uint8_t* levels) {
  HWY_DYNAMIC_DISPATCH(to_classes)(x.data(), x.size(), threshold, levels);
}
void add_levels(const std::uint8_t* levels, float base, float step, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(levels_add)(levels, base, step, out.data(), out.size());
}
void spread_levels(const std::uint8_t* levels, float base, float step, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(levels_set)(levels, base, step, out.data(), out.size());
}

// Their memory may be unaligned: it is only ever loaded and stored as vectors or copied.
void round_to_int16(std::span<const float> x, float multiply, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(nearest_int16)(x.data(), x.size(), multiply, reinterpret_cast<std::int16_t*>(out));
}
void round_to_int16(std::span<const float> x, float multiply, const Noise& noise, std::size_t first, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(to_int16)
  (x.data(), x.size(), multiply, noise, first, reinterpret_cast<std::int16_t*>(out));
}
void add_int16(const std::byte* bytes, float step, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(int16_add)(reinterpret_cast<const std::int16_t*>(bytes), step, out.data(), out.size());
}
void spread_int16(const std::byte* bytes, float step, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(int16_set)(reinterpret_cast<const std::int16_t*>(bytes), step, out.data(), out.size());
}

namespace {

// The noise of number i: sixteen numbers share eight words, the first eight of them the lower halves.
std::int64_t ref_noise(const Noise& noise, std::size_t first, std::size_t i) {
  const std::uint32_t word = noise.bits(first + i / 16 * 8 + i % 8);
  return i % 16 < 8 ? word & 0xFFFF : word >> 16;
}

}  // namespace

std::uint8_t ref_level(float x, const Grid& grid, const Noise& noise, std::size_t first, std::size_t i) {
  const float y = x * (grid.multiply * 65536) + grid.add * 65536;
  const float within = std::clamp(y, 0.0f, static_cast<float>(grid.top) * 65536);
  return static_cast<std::uint8_t>((static_cast<std::int64_t>(within) + ref_noise(noise, first, i)) >> 16);
}

std::int16_t ref_int16(float x, float multiply, const Noise& noise, std::size_t first, std::size_t i) {
  const float y = std::clamp(x * (multiply * 65536), -0x1p31f, 32767 * 65536.0f);
  return static_cast<std::int16_t>((static_cast<std::int64_t>(std::floor(y)) + ref_noise(noise, first, i)) >> 16);
}

std::size_t level_place(std::size_t i) { return i / level_group * level_group + i % 8 * 4 + i % level_group / 8; }

}  // namespace echelon::codecs
#endif
