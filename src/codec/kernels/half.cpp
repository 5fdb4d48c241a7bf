#include "codec/kernels/half.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/half.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using kernels::HWY_NAMESPACE::D;
using kernels::HWY_NAMESPACE::set;
using kernels::HWY_NAMESPACE::V;
using kernels::HWY_NAMESPACE::width;
using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using DH = hn::Rebind<std::uint16_t, DU>;  // as many halves as D has floats
using VH = hn::Vec<DH>;

HWY_INLINE VU word(std::uint32_t x) { return hn::Set(DU(), x); }

struct Bf16 {
  static HWY_INLINE VH from(V x) {
    const VU bits = hn::BitCast(DU(), x);
    const VU odd = hn::And(hn::ShiftRight<16>(bits), word(1));
    const VU rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, word(0x7FFF))));
    const VU nan = word(0x7FC0);
    const auto is_nan = hn::RebindMask(DU(), hn::IsNaN(x));
    const hn::RebindToSigned<DU> di;
    return hn::DemoteTo(DH(), hn::BitCast(di, hn::IfThenElse(is_nan, nan, rounded)));
  }
  static HWY_INLINE V to(VH half) { return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), half))); }
};

struct Fp16 {
  static HWY_INLINE VH from(V x) {
#if HWY_TARGET == HWY_AVX2
    const hn::Rebind<hwy::float16_t, D> df;
    return hn::BitCast(DH(), hn::DemoteTo(df, x));
#else
    const VU all = hn::BitCast(DU(), x), sign = hn::And(all, word(0x80000000u)), bits = hn::Xor(all, sign);
    const hn::RebindToSigned<DU> di;
    const auto less = [&](VU a, std::uint32_t b) HWY_ATTR {  // of numbers without the highest bit
      return hn::RebindMask(DU(), hn::Lt(hn::BitCast(di, a), hn::BitCast(di, word(b))));
    };
    const VU magic = word(((127 - 15) + (23 - 10) + 1) << 23);  // adding it rounds a denormal where its last bit is
    const VU small = hn::Sub(hn::BitCast(DU(), hn::Add(hn::BitCast(D(), bits), hn::BitCast(D(), magic))), magic);
    const VU odd = hn::And(hn::ShiftRight<13>(bits), word(1));
    const VU usual = hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, word(((15u - 127u) << 23) + 0xFFF))));
    const VU large = hn::IfThenElse(less(bits, 0x7F800001u), word(0x7C00), word(0x7E00));
    const VU half =
        hn::IfThenElse(less(bits, 113u << 23), small, hn::IfThenElse(less(bits, (127u + 16u) << 23), usual, large));
    return hn::DemoteTo(DH(), hn::BitCast(di, hn::Or(half, hn::ShiftRight<16>(sign))));
#endif
  }
  static HWY_INLINE V to(VH half) {
#if HWY_TARGET == HWY_AVX2
    const hn::Rebind<hwy::float16_t, D> df;
    return hn::PromoteTo(D(), hn::BitCast(df, half));
#else
    const VU wide = hn::PromoteTo(DU(), half);
    const VU shifted = hn::ShiftLeft<13>(hn::And(wide, word(0x7FFF))), exponent = hn::And(shifted, word(0x0F800000));
    const VU usual = hn::Add(shifted, word((127 - 15) << 23));
    const VU large = hn::Add(usual, word((128 - 16) << 23));  // infinity, NaN
    const V small = hn::Sub(hn::BitCast(D(), hn::Add(usual, word(1 << 23))), hn::BitCast(D(), word(113 << 23)));
    const VU bits = hn::IfThenElse(hn::Eq(exponent, word(0x0F800000)), large,
                                   hn::IfThenElse(hn::Eq(exponent, word(0)), hn::BitCast(DU(), small), usual));
    return hn::BitCast(D(), hn::Or(bits, hn::ShiftLeft<16>(hn::And(wide, word(0x8000)))));
#endif
  }
};

HWY_INLINE VH load_halves(const std::byte* bytes) {
  return hn::LoadU(DH(), reinterpret_cast<const std::uint16_t*>(bytes));
}

template <class Half>
HWY_INLINE void shorten(const float* x, std::byte* bytes, std::size_t n) {
  std::size_t i = 0;
  for (; i + width <= n; i += width)
    hn::StoreU(Half::from(hn::LoadU(D(), x + i)), DH(), reinterpret_cast<std::uint16_t*>(bytes + 2 * i));
  if (i == n) return;
  HWY_ALIGN float rest[width] = {};
  HWY_ALIGN std::uint16_t halves[width];
  std::memcpy(rest, x + i, (n - i) * sizeof(float));
  hn::Store(Half::from(hn::Load(D(), rest)), DH(), halves);
  std::memcpy(bytes + 2 * i, halves, (n - i) * 2);
}

template <class Half, bool add>
HWY_INLINE void lengthen(const std::byte* bytes, float scale, float* out, std::size_t n) {
  const V factor = set(scale);
  const auto result = [&](VH half, V before)
                          HWY_ATTR { return add ? hn::Add(before, hn::Mul(factor, Half::to(half))) : Half::to(half); };
  std::size_t i = 0;
  for (; i + width <= n; i += width)
    hn::StoreU(result(load_halves(bytes + 2 * i), hn::LoadU(D(), out + i)), D(), out + i);
  if (i == n) return;
  HWY_ALIGN float rest[width] = {};
  HWY_ALIGN std::uint16_t halves[width] = {};
  std::memcpy(rest, out + i, (n - i) * sizeof(float));
  std::memcpy(halves, bytes + 2 * i, (n - i) * 2);
  hn::Store(result(hn::Load(DH(), halves), hn::Load(D(), rest)), D(), rest);
  std::memcpy(out + i, rest, (n - i) * sizeof(float));
}

HWY_FLATTEN void fp16_shorten(const float* x, std::byte* b, std::size_t n) { shorten<Fp16>(x, b, n); }
HWY_FLATTEN void bf16_shorten(const float* x, std::byte* b, std::size_t n) { shorten<Bf16>(x, b, n); }
HWY_FLATTEN void fp16_add(const std::byte* b, float s, float* x, std::size_t n) { lengthen<Fp16, true>(b, s, x, n); }
HWY_FLATTEN void bf16_add(const std::byte* b, float s, float* x, std::size_t n) { lengthen<Bf16, true>(b, s, x, n); }
HWY_FLATTEN void fp16_set(const std::byte* b, float* x, std::size_t n) { lengthen<Fp16, false>(b, 1, x, n); }
HWY_FLATTEN void bf16_set(const std::byte* b, float* x, std::size_t n) { lengthen<Bf16, false>(b, 1, x, n); }

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>
#include <cmath>

namespace echelon::codecs {

HWY_EXPORT(fp16_shorten);
HWY_EXPORT(bf16_shorten);
HWY_EXPORT(fp16_add);
HWY_EXPORT(bf16_add);
HWY_EXPORT(fp16_set);
HWY_EXPORT(bf16_set);

void to_fp16(std::span<const float> x, std::byte* bytes) {
  HWY_DYNAMIC_DISPATCH(fp16_shorten)(x.data(), bytes, x.size());
}
void add_fp16(const std::byte* bytes, float scale, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(fp16_add)(bytes, scale, out.data(), out.size());
}
void from_fp16(const std::byte* bytes, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(fp16_set)(bytes, out.data(), out.size());
}
void to_bf16(std::span<const float> x, std::byte* bytes) {
  HWY_DYNAMIC_DISPATCH(bf16_shorten)(x.data(), bytes, x.size());
}
void add_bf16(const std::byte* bytes, float scale, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(bf16_add)(bytes, scale, out.data(), out.size());
}
void from_bf16(const std::byte* bytes, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(bf16_set)(bytes, out.data(), out.size());
}

std::uint16_t ref_to_fp16(float x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return sign | 0x7E00;
  const double size = std::abs(static_cast<double>(x));
  if (size >= 65520) return sign | 0x7C00;  // half way to the number after the largest
  int exponent = size > 0 ? std::max(std::ilogb(size), -14) : -14;
  auto units =
      static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // ties to even; 1024 .. 2047, or less
  if (units == 2048) units = 1024, ++exponent;
  const int bits = units < 1024 ? units : ((exponent + 15) << 10) | (units - 1024);
  return sign | static_cast<std::uint16_t>(bits);
}

float ref_from_fp16(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half & 0x8000 ? -size : size;
}

std::uint16_t ref_to_bf16(float x) {
  if (std::isnan(x)) return 0x7FC0;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rest = bits & 0xFFFF, whole = bits >> 16;
  return static_cast<std::uint16_t>(whole + (rest > 0x8000 || (rest == 0x8000 && (whole & 1))));
}

float ref_from_bf16(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

}  // namespace echelon::codecs
#endif
