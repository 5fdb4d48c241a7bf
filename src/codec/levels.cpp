#include "codec/levels.h"

#include "kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/levels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using DB = hn::Rebind<std::uint8_t, D>;  // as many bytes as D has floats
using DS = hn::Rebind<std::int16_t, D>;

constexpr std::size_t group = 16, half_group = 8;  // numbers that share eight words of noise: low halves, high halves

// The words of Noise from `position` on.
HWY_INLINE VU noise_words(const Noise& noise, std::size_t position) {
  const VU start = hn::Set(DU(), static_cast<std::uint32_t>(position) + noise.before);
  VU x = hn::Add(start, hn::Iota(DU(), 0));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(DU(), 0x21F0AAADu));
  x = hn::Mul(hn::Xor(hn::Xor(x, hn::Set(DU(), noise.between)), hn::ShiftRight<15>(x)), hn::Set(DU(), 0xD35A2D97u));
  return hn::Xor(x, hn::ShiftRight<15>(x));
}

HWY_INLINE V unit(VU word) { return hn::Mul(hn::ConvertTo(D(), hn::BitCast(DI(), word)), set(0x1p-16f)); }

// Calls f(index of a vector, its uniform noise) for the vectors of 16 numbers.
template <class F>
HWY_INLINE void with_noise(const Noise& noise, std::size_t position, const F& f) {
  unrolled<half_group / width>([&](auto k) HWY_ATTR {
    const VU words = noise_words(noise, position + k * width);
    f(std::size_t{k}, unit(hn::And(words, hn::Set(DU(), 0xFFFF))));
    f(std::size_t{k} + half_group / width, unit(hn::ShiftRight<16>(words)));
  });
}

// f16(in, out, position of the noise) for groups of 16 numbers, the last one through memory of its own.
template <typename Out, class F>
HWY_INLINE void for_each_group(const float* x, std::size_t n, std::size_t first, Out* out, const F& f) {
  std::size_t i = 0;
  for (; i + group <= n; i += group) f(x + i, out + i, first + i / 2);
  if (i == n) return;
  HWY_ALIGN float in[group] = {};
  HWY_ALIGN Out rest[group];
  std::memcpy(in, x + i, (n - i) * sizeof(float));
  f(in, rest, first + i / 2);
  std::memcpy(out + i, rest, (n - i) * sizeof(Out));
}

HWY_FLATTEN void to_levels(const float* x, std::size_t n, const Grid& grid, const Noise& noise, std::size_t first,
                           std::uint8_t* levels) {
  const V multiply = set(grid.multiply), add = set(grid.add), top = set(static_cast<float>(grid.top)),
          zero = hn::Zero(D());
  for_each_group(x, n, first, levels, [&](const float* in, std::uint8_t* out, std::size_t position) HWY_ATTR {
    with_noise(noise, position, [&](std::size_t k, V u) HWY_ATTR {
      const V y = hn::Add(hn::Mul(hn::LoadU(D(), in + k * width), multiply), add);
      const V within = hn::Min(hn::Max(y, zero), top);           // in this order a NaN becomes 0
      const VI level = hn::ConvertTo(DI(), hn::Add(within, u));  // never beyond top: u < 1, and the sum is exact there
      hn::StoreU(hn::DemoteTo(DB(), level), DB(), out + k * width);
    });
  });
}

HWY_FLATTEN void to_int16(const float* x, std::size_t n, float factor, const Noise& noise, std::size_t first,
                          std::int16_t* numbers) {
  const V multiply = set(factor), least = set(-32768), most = set(32767);
  for_each_group(x, n, first, numbers, [&](const float* in, std::int16_t* out, std::size_t position) HWY_ATTR {
    with_noise(noise, position, [&](std::size_t k, V u) HWY_ATTR {
      const V y = hn::Min(hn::Max(hn::Mul(hn::LoadU(D(), in + k * width), multiply), least), most);
      const V below = hn::Floor(y);
      const V up = hn::IfThenElseZero(hn::Lt(u, hn::Sub(y, below)), set(1));
      hn::StoreU(hn::DemoteTo(DS(), hn::ConvertTo(DI(), hn::Add(below, up))), DS(), out + k * width);
    });
  });
}

HWY_FLATTEN void nearest_int16(const float* x, std::size_t n, float factor, std::int16_t* numbers) {
  const V multiply = set(factor), least = set(-32768), most = set(32767);
  for_each_group(x, n, 0, numbers, [&](const float* in, std::int16_t* out, std::size_t) HWY_ATTR {
    unrolled<group / width>([&](auto k) HWY_ATTR {
      const V y = hn::Min(hn::Max(hn::Mul(hn::LoadU(D(), in + k * width), multiply), least), most);
      hn::StoreU(hn::DemoteTo(DS(), hn::NearestInt(y)), DS(), out + k * width);
    });
  });
}

HWY_FLATTEN void to_classes(const float* x, std::size_t n, float threshold, std::uint8_t* levels) {
  const V high = set(threshold), low = set(-threshold);
  const VI one = hn::Set(DI(), 1);
  for_each_group(x, n, 0, levels, [&](const float* in, std::uint8_t* out, std::size_t) HWY_ATTR {
    unrolled<group / width>([&](auto k) HWY_ATTR {
      const V y = hn::LoadU(D(), in + k * width);
      const VI above = hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Ge(y, high)));  // -1 where it is so
      const VI below = hn::VecFromMask(DI(), hn::RebindMask(DI(), hn::Le(y, low)));
      hn::StoreU(hn::DemoteTo(DB(), hn::Add(hn::Sub(one, above), below)), DB(), out + k * width);
    });
  });
}

template <bool add, class D_in, typename In>
HWY_INLINE void from_levels(const In* levels, float base, float step, float* out, std::size_t n) {
  const D_in from;
  const V b = set(base), s = set(step);
  const auto value = [&](hn::Vec<D_in> level)
                         HWY_ATTR { return hn::Add(hn::Mul(hn::ConvertTo(D(), hn::PromoteTo(DI(), level)), s), b); };
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    const V v = value(hn::LoadU(from, levels + i));
    hn::StoreU(add ? hn::Add(hn::LoadU(D(), out + i), v) : v, D(), out + i);
  }
  if (i == n) return;
  HWY_ALIGN In rest[width] = {};
  std::memcpy(rest, levels + i, (n - i) * sizeof(In));
  const V v = value(hn::Load(from, rest));
  store_n(add ? hn::Add(load_n(out + i, n - i), v) : v, out + i, n - i);
}

HWY_FLATTEN void levels_add(const std::uint8_t* x, float base, float step, float* out, std::size_t n) {
  from_levels<true, DB>(x, base, step, out, n);
}
HWY_FLATTEN void levels_set(const std::uint8_t* x, float base, float step, float* out, std::size_t n) {
  from_levels<false, DB>(x, base, step, out, n);
}
HWY_FLATTEN void int16_add(const std::int16_t* x, float step, float* out, std::size_t n) {
  from_levels<true, DS>(x, 0, step, out, n);
}
HWY_FLATTEN void int16_set(const std::int16_t* x, float step, float* out, std::size_t n) {
  from_levels<false, DS>(x, 0, step, out, n);
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

float ref_unit(const Noise& noise, std::size_t first, std::size_t i) {
  const std::uint32_t word = noise.bits(first + i / 16 * 8 + i % 8);
  return static_cast<float>(i % 16 < 8 ? word & 0xFFFF : word >> 16) * 0x1p-16f;
}

}  // namespace

std::uint8_t ref_level(float x, const Grid& grid, const Noise& noise, std::size_t first, std::size_t i) {
  const float y = std::clamp(x * grid.multiply + grid.add, 0.0f, static_cast<float>(grid.top));
  return static_cast<std::uint8_t>(y + ref_unit(noise, first, i));
}

std::int16_t ref_int16(float x, float multiply, const Noise& noise, std::size_t first, std::size_t i) {
  const float y = std::clamp(x * multiply, -32768.0f, 32767.0f), below = std::floor(y);
  return static_cast<std::int16_t>(below + (ref_unit(noise, first, i) < y - below ? 1.0f : 0.0f));
}

}  // namespace echelon::codecs
#endif
