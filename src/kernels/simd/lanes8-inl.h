// Eight floats as one value, whatever the target's vectors are: one vector on AVX2, two on SSE4. For kernels on
// channel8 and batch8, whose unit is eight lanes. Compiled once per target, hence Highway's own include guard.

#if defined(ECHELON_KERNELS_LANES8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_LANES8_INL_H
#undef ECHELON_KERNELS_LANES8_INL_H
#else
#define ECHELON_KERNELS_LANES8_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::lanes8::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<float, 8>;
inline constexpr int width = static_cast<int>(hn::MaxLanes(Tag())), parts = 8 / width;

struct F8 {
  hn::Vec<Tag> v[parts];

  static HWY_INLINE F8 set(float x) {
    F8 r;
    for (int i = 0; i < parts; ++i) r.v[i] = hn::Set(Tag(), x);
    return r;
  }
  static HWY_INLINE F8 load(const float* p) {
    F8 r;
    for (int i = 0; i < parts; ++i) r.v[i] = hn::LoadU(Tag(), p + i * width);
    return r;
  }
  // The first `count` floats, zeros behind them; memory behind them is not touched.
  static HWY_INLINE F8 load(const float* p, std::int64_t count) {
    if (count == 8) return load(p);
    HWY_ALIGN float buffer[8] = {};
    std::memcpy(buffer, p, static_cast<std::size_t>(count) * sizeof(float));
    return load(buffer);
  }
  HWY_INLINE void store(float* p) const {
    for (int i = 0; i < parts; ++i) hn::StoreU(v[i], Tag(), p + i * width);
  }
  HWY_INLINE void store(float* p, std::int64_t count) const {
    if (count == 8) return store(p);
    HWY_ALIGN float buffer[8];
    store(buffer);
    std::memcpy(p, buffer, static_cast<std::size_t>(count) * sizeof(float));
  }
  // Zero from lane `count` on, whatever was there.
  HWY_INLINE F8 first(std::int64_t count) const {
    if (count == 8) return *this;
    F8 r;
    for (int i = 0; i < parts; ++i) {
      const std::int64_t here = count - i * width;
      r.v[i] = hn::IfThenElseZero(hn::FirstN(Tag(), static_cast<std::size_t>(here > 0 ? here : 0)), v[i]);
    }
    return r;
  }
};

// a op b, lane by lane.
HWY_INLINE F8 operator+(F8 a, F8 b) {
  for (int i = 0; i < parts; ++i) a.v[i] = hn::Add(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F8 operator-(F8 a, F8 b) {
  for (int i = 0; i < parts; ++i) a.v[i] = hn::Sub(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F8 operator*(F8 a, F8 b) {
  for (int i = 0; i < parts; ++i) a.v[i] = hn::Mul(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F8 operator/(F8 a, F8 b) {
  for (int i = 0; i < parts; ++i) a.v[i] = hn::Div(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F8 mul_add(F8 a, F8 b, F8 c) {  // a * b + c
  for (int i = 0; i < parts; ++i) c.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return c;
}
HWY_INLINE F8 sqrt(F8 a) {
  for (int i = 0; i < parts; ++i) a.v[i] = hn::Sqrt(a.v[i]);
  return a;
}
HWY_INLINE F8 relu(F8 a) {  // NaN stays NaN
  for (int i = 0; i < parts; ++i) a.v[i] = hn::IfThenZeroElse(hn::Lt(a.v[i], hn::Zero(Tag())), a.v[i]);
  return a;
}
HWY_INLINE F8 where_positive(F8 a, F8 b) {  // b where a > 0, else zero
  for (int i = 0; i < parts; ++i) b.v[i] = hn::IfThenElseZero(hn::Gt(a.v[i], hn::Zero(Tag())), b.v[i]);
  return b;
}

// to[col][row] = from[row][col] for 4x4 floats; steps are the distances of rows.
HWY_INLINE void transpose_4x4(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<double, 2> d2;
  const auto a = hn::LoadU(d4, from), b = hn::LoadU(d4, from + from_step), c = hn::LoadU(d4, from + 2 * from_step),
             e = hn::LoadU(d4, from + 3 * from_step);
  const auto ab_low = hn::BitCast(d2, hn::InterleaveLower(d4, a, b));
  const auto ab_high = hn::BitCast(d2, hn::InterleaveUpper(d4, a, b));
  const auto ce_low = hn::BitCast(d2, hn::InterleaveLower(d4, c, e));
  const auto ce_high = hn::BitCast(d2, hn::InterleaveUpper(d4, c, e));
  hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, ab_low, ce_low)), d4, to);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, ab_low, ce_low)), d4, to + to_step);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, ab_high, ce_high)), d4, to + 2 * to_step);
  hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, ab_high, ce_high)), d4, to + 3 * to_step);
}

HWY_INLINE void transpose_8x8(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
  for (int r = 0; r < 8; r += 4)
    for (int c = 0; c < 8; c += 4) transpose_4x4(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
}

}  // namespace echelon::kernels::lanes8::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
