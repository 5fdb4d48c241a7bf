// The transforms of F(4x4, 3x3) on eight channels at a time, for conv_winograd*.cpp. Points 0, 1, -1, 2, -2, infinity:
//   y = A^T [ (G g G^T) * (B^T d B) ] A
// Compiled once per target, hence Highway's own include guard.

#if defined(ECHELON_KERNELS_CONV_WINOGRAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_CONV_WINOGRAD_INL_H
#undef ECHELON_KERNELS_CONV_WINOGRAD_INL_H
#else
#define ECHELON_KERNELS_CONV_WINOGRAD_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>

#include "kernels/conv/conv_winograd_plan.h"
#include "kernels/simd/lanes8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::winograd::HWY_NAMESPACE {
using namespace lanes8::HWY_NAMESPACE;

// Two blocks of eight channels as one vector, where there are vectors of sixteen.
using Tag16 = hn::CappedTag<float, 16>;
inline constexpr bool has_16_lanes = hn::MaxLanes(Tag16()) == 16;

HWY_INLINE F8 times(float k, F8 a) { return F8::set(k) * a; }
HWY_INLINE F8 plus(F8 c, float k, F8 a) { return mul_add(F8::set(k), a, c); }  // c + k a

// Each is one of the matrices applied to a column: in[0..], out[0..].
struct Bt {  // 6 -> 6
  static constexpr int ins = 6, outs = 6;
  static HWY_INLINE void apply(const F8* d, F8* v) {
    const F8 a = plus(d[4], -4, d[2]), b = plus(d[3], -4, d[1]), c = d[4] - d[2], e = d[3] - d[1];
    v[0] = plus(plus(d[4], -5, d[2]), 4, d[0]);
    v[1] = a + b;
    v[2] = a - b;
    v[3] = plus(c, 2, e);
    v[4] = plus(c, -2, e);
    v[5] = plus(plus(d[5], -5, d[3]), 4, d[1]);
  }
};
struct At {  // 6 -> 4
  static constexpr int ins = 6, outs = 4;
  static HWY_INLINE void apply(const F8* m, F8* y) {
    const F8 s = m[1] + m[2], d = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
    y[0] = (m[0] + s) + s2;
    y[1] = plus(d, 2, d2);
    y[2] = plus(s, 4, s2);
    y[3] = plus(d, 8, d2) + m[5];
  }
};
struct A {  // 4 -> 6
  static constexpr int ins = 4, outs = 6;
  static HWY_INLINE void apply(const F8* y, F8* m) {
    const F8 even = y[0] + y[2], odd = y[1] + y[3], even2 = plus(y[0], 4, y[2]), odd2 = plus(times(2, y[1]), 8, y[3]);
    m[0] = y[0];
    m[1] = even + odd;
    m[2] = even - odd;
    m[3] = even2 + odd2;
    m[4] = even2 - odd2;
    m[5] = y[3];
  }
};
struct G {  // 3 -> 6
  static constexpr int ins = 3, outs = 6;
  static HWY_INLINE void apply(const F8* g, F8* u) {
    const F8 a = times(-1.0f / 6, g[0] + g[2]), b = times(-1.0f / 6, g[1]);
    const F8 c = plus(times(1.0f / 24, g[0]), 1.0f / 6, g[2]), e = times(1.0f / 12, g[1]);
    u[0] = times(0.25f, g[0]);
    u[1] = a + b;
    u[2] = a - b;
    u[3] = c + e;
    u[4] = c - e;
    u[5] = g[2];
  }
};
struct Gt {  // 6 -> 3
  static constexpr int ins = 6, outs = 3;
  static HWY_INLINE void apply(const F8* u, F8* g) {
    const F8 s = u[1] + u[2], d = u[2] - u[1], s2 = u[3] + u[4], d2 = u[3] - u[4];
    const F8 sixth = times(-1.0f / 6, s);
    g[0] = plus(plus(sixth, 0.25f, u[0]), 1.0f / 24, s2);
    g[1] = plus(times(1.0f / 6, d), 1.0f / 12, d2);
    g[2] = plus(sixth, 1.0f / 6, s2) + u[5];
  }
};

// What the next tile will touch. Stores wait in line for memory, one after the other, unless it is already on its way;
// addresses past the end of a buffer do no harm.
HWY_INLINE void prefetch_points(const float* at, std::int64_t step) {
#pragma GCC unroll 36
  for (int i = 0; i < 36; ++i) hwy::Prefetch(at + i * step);
}
HWY_INLINE void prefetch_tile(const float* at, std::int64_t row) {  // 4x4 pixels, two lines a row
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    hwy::Prefetch(at + r * row);
    hwy::Prefetch(at + r * row + 16);
  }
}

// out = M in M^T, where load(row, in) fetches a row of the input and store(row, col, value) takes the output.
template <class M, class Load, class Store>
HWY_INLINE void both_ways(const Load& load, const Store& store) {
  HWY_ALIGN float half[M::ins * M::outs * 8];
#pragma GCC unroll 6
  for (int r = 0; r < M::ins; ++r) {
    F8 in[M::ins], out[M::outs];
    load(r, in);
    M::apply(in, out);
#pragma GCC unroll 6
    for (int c = 0; c < M::outs; ++c) out[c].store(half + (c * M::ins + r) * 8);
  }
#pragma GCC unroll 6
  for (int c = 0; c < M::outs; ++c) {
    F8 in[M::ins], out[M::outs];
#pragma GCC unroll 6
    for (int r = 0; r < M::ins; ++r) in[r] = F8::load(half + (c * M::ins + r) * 8);
    M::apply(in, out);
#pragma GCC unroll 6
    for (int r = 0; r < M::outs; ++r) store(r, c, out[r]);
  }
}

// Calls fetch(col) for the columns [LEFT, M::ins - RIGHT) of a row; the others are zero.
template <class M, int LEFT, int RIGHT, class Fetch>
HWY_INLINE void load_row(bool inside, const Fetch& fetch, F8* in) {
#pragma GCC unroll 6
  for (int c = 0; c < M::ins; ++c) in[c] = F8::set(0.0f);
  if (!inside) return;
#pragma GCC unroll 6
  for (int c = LEFT; c < M::ins - RIGHT; ++c) in[c] = fetch(c);
}

// Transforms the window at (y, x) of one plane of eight channels, zeros around it, and stores element (r, c) at
// to[(r * 6 + c) * step]. The windows at an image's border mostly lack one column, so those cases are compiled apart.
template <class M>
HWY_INLINE void transform_window(const float* plane, std::int64_t h, std::int64_t w, std::int64_t y, std::int64_t x,
                                 float* to, std::int64_t step) {
  const auto store = [&](int r, int c, F8 v) HWY_ATTR { v.store(to + (r * 6 + c) * step); };
  const auto inside = [&](int r) HWY_ATTR { return y + r >= 0 && y + r < h; };
  const float* at = plane + (y * w + x) * 8;
  const auto fetch = [&](int r)
                         HWY_ATTR { return [row = at + r * w * 8](int c) HWY_ATTR { return F8::load(row + c * 8); }; };
  const std::int64_t left = -x, right = x + M::ins - w;  // columns that the window lacks
  if (left <= 0 && right <= 0)
    both_ways<M>([&](int r, F8* in) HWY_ATTR { load_row<M, 0, 0>(inside(r), fetch(r), in); }, store);
  else if (left == 1 && right <= 0)
    both_ways<M>([&](int r, F8* in) HWY_ATTR { load_row<M, 1, 0>(inside(r), fetch(r), in); }, store);
  else if (left <= 0 && right == 1)
    both_ways<M>([&](int r, F8* in) HWY_ATTR { load_row<M, 0, 1>(inside(r), fetch(r), in); }, store);
  else if (left == 1 && right == 1)
    both_ways<M>([&](int r, F8* in) HWY_ATTR { load_row<M, 1, 1>(inside(r), fetch(r), in); }, store);
  else
    both_ways<M>(
        [&](int r, F8* in) HWY_ATTR {
          for (int c = 0; c < M::ins; ++c)
            in[c] = inside(r) && c >= left && c < M::ins - right ? fetch(r)(c) : F8::set(0.0f);
        },
        store);
}

}  // namespace echelon::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
