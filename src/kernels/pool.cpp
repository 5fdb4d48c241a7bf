// In channel8 and batch8 an activation is a stack of planes of eight-lane pixels; in plain, of one-lane pixels. Pooling
// never mixes lanes, so one piece of code serves all three.
#include "kernels/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef ECHELON_KERNELS_POOL_ONCE
#define ECHELON_KERNELS_POOL_ONCE
namespace echelon::kernels::pooling {
inline int bytes_of_index(const PoolShape& s) { return static_cast<int>(size_of(pool_index_type(s))); }
}  // namespace echelon::kernels::pooling
#endif

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::pooling::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The part of the window at output position `o` that lies inside [0, extent): taps [begin, end), tap 0 being at
// `first`.
struct Span1 {
  std::int64_t first, begin, end;
  Span1(std::int64_t o, int stride, int pad, std::int64_t k, std::int64_t extent)
      : first(o * stride - pad), begin(std::max<std::int64_t>(0, -first)), end(std::min(k, extent - first)) {}
  std::int64_t size() const { return end - begin; }
  bool whole(std::int64_t k) const { return begin == 0 && end == k; }
};

// Pooling of planes with `L` lanes a pixel. Tag D covers the lanes, or half of them where vectors are narrow.
// K is the kernel's extent when it is known at compile time (square, and the window inside the image), or 0.
template <class D, int L>
struct Pool {
  static constexpr D d{};
  using V = hn::Vec<D>;
  using DI = hn::RebindToSigned<D>;
  using Index = hn::Vec<DI>;
  static constexpr DI di{};
  static constexpr hn::Rebind<std::uint8_t, D> du{};

  const PoolShape& s;
  std::int64_t row = s.w * L;
  int index_bytes = bytes_of_index(s);

  // An index is a byte where the window allows it.
  HWY_INLINE void store_index(Index place, std::byte* to) const {
    if (index_bytes == 1)
      hn::StoreU(hn::DemoteTo(du, place), du, reinterpret_cast<std::uint8_t*>(to));
    else
      hn::StoreU(place, di, reinterpret_cast<std::int32_t*>(to));
  }
  HWY_INLINE Index load_index(const std::byte* from) const {
    if (index_bytes == 1) return hn::PromoteTo(di, hn::LoadU(du, reinterpret_cast<const std::uint8_t*>(from)));
    return hn::LoadU(di, reinterpret_cast<const std::int32_t*>(from));
  }

  template <int K>
  HWY_INLINE void max_window(const Span1& ys, const Span1& xs, const float* x, float* y, std::byte* index) const {
    const std::int64_t y0 = K ? 0 : ys.begin, y1 = K ? K : ys.end, x0 = K ? 0 : xs.begin, x1 = K ? K : xs.end;
    const std::int64_t kw = K ? K : s.kw;
    const float* from = x + ys.first * row + xs.first * L;
    V best = hn::LoadU(d, from + y0 * row + x0 * L);
    Index place = hn::Set(di, static_cast<std::int32_t>(y0 * kw + x0));
#pragma GCC unroll 4
    for (std::int64_t r = y0; r < y1; ++r)
#pragma GCC unroll 4
      for (std::int64_t i = x0; i < x1; ++i) {
        const V v = hn::LoadU(d, from + r * row + i * L);
        const auto better = hn::Or(hn::Gt(v, best), hn::Ne(v, v));
        best = hn::IfThenElse(better, v, best);
        place = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<std::int32_t>(r * kw + i)), place);
      }
    hn::StoreU(best, d, y);
    if (index) store_index(place, index);
  }

  template <int K>
  HWY_INLINE void max_window_back(const Span1& ys, const Span1& xs, bool add, V g, Index place, float* dx) const {
    const std::int64_t y0 = K ? 0 : ys.begin, y1 = K ? K : ys.end, x0 = K ? 0 : xs.begin, x1 = K ? K : xs.end;
    const std::int64_t kw = K ? K : s.kw;
    float* to = dx + ys.first * row + xs.first * L;
#pragma GCC unroll 4
    for (std::int64_t r = y0; r < y1; ++r)
#pragma GCC unroll 4
      for (std::int64_t i = x0; i < x1; ++i) {
        const auto here = hn::Eq(place, hn::Set(di, static_cast<std::int32_t>(r * kw + i)));
        const V share = hn::IfThenElseZero(hn::RebindMask(d, here), g);
        float* at = to + r * row + i * L;
        hn::StoreU(add ? hn::Add(hn::LoadU(d, at), share) : share, d, at);
      }
  }

  float scale(PoolKind kind, const Span1& ys, const Span1& xs) const {
    return 1.0f / static_cast<float>(kind == PoolKind::average ? s.kh * s.kw : ys.size() * xs.size());
  }

  void average_window(PoolKind kind, const Span1& ys, const Span1& xs, const float* x, float* y) const {
    V sum = hn::Zero(d);
    for (std::int64_t r = ys.begin; r < ys.end; ++r)
      for (std::int64_t i = xs.begin; i < xs.end; ++i)
        sum = hn::Add(sum, hn::LoadU(d, x + (ys.first + r) * row + (xs.first + i) * L));
    hn::StoreU(hn::Mul(sum, hn::Set(d, scale(kind, ys, xs))), d, y);
  }

  void average_window_back(PoolKind kind, const Span1& ys, const Span1& xs, V g, float* dx) const {
    const V share = hn::Mul(g, hn::Set(d, scale(kind, ys, xs)));
    for (std::int64_t r = ys.begin; r < ys.end; ++r)
      for (std::int64_t i = xs.begin; i < xs.end; ++i) {
        float* at = dx + (ys.first + r) * row + (xs.first + i) * L;
        hn::StoreU(hn::Add(hn::LoadU(d, at), share), d, at);
      }
  }

  int known_kernel(const Span1& ys, const Span1& xs) const {
    if (s.kh != s.kw || !ys.whole(s.kh) || !xs.whole(s.kw)) return 0;
    return s.kh == 2 || s.kh == 3 ? static_cast<int>(s.kh) : 0;
  }

  void forward(PoolKind kind, const float* x, float* y, std::byte* index) const {
    for (std::int64_t oy = 0; oy < s.out_h(); ++oy) {
      const Span1 ys(oy, s.stride_h, s.pad_h, s.kh, s.h);
      for (std::int64_t ox = 0; ox < s.out_w(); ++ox, y += L, index += index ? L * index_bytes : 0) {
        const Span1 xs(ox, s.stride_w, s.pad_w, s.kw, s.w);
        if (kind != PoolKind::max) {
          average_window(kind, ys, xs, x, y);
          continue;
        }
        switch (known_kernel(ys, xs)) {
          case 2: max_window<2>(ys, xs, x, y, index); break;
          case 3: max_window<3>(ys, xs, x, y, index); break;
          default: max_window<0>(ys, xs, x, y, index);
        }
      }
    }
  }

  void backward(PoolKind kind, const float* dy, const std::byte* index, float* dx) const {
    // Windows that tile the image exactly write every pixel once; otherwise they add to zeros.
    const bool tiles = kind == PoolKind::max && s.kh == s.stride_h && s.kw == s.stride_w && s.pad_h == 0 &&
                       s.pad_w == 0 && s.h % s.kh == 0 && s.w % s.kw == 0;
    if (!tiles)
      for (std::int64_t i = 0; i < s.h * s.w; ++i) hn::StoreU(hn::Zero(d), d, dx + i * L);
    for (std::int64_t oy = 0; oy < s.out_h(); ++oy) {
      const Span1 ys(oy, s.stride_h, s.pad_h, s.kh, s.h);
      for (std::int64_t ox = 0; ox < s.out_w(); ++ox, dy += L, index += index ? L * index_bytes : 0) {
        const Span1 xs(ox, s.stride_w, s.pad_w, s.kw, s.w);
        const V g = hn::LoadU(d, dy);
        if (kind != PoolKind::max) {
          average_window_back(kind, ys, xs, g, dx);
          continue;
        }
        const Index place = load_index(index);
        switch (known_kernel(ys, xs)) {
          case 2: max_window_back<2>(ys, xs, !tiles, g, place, dx); break;
          case 3: max_window_back<3>(ys, xs, !tiles, g, place, dx); break;
          default: max_window_back<0>(ys, xs, !tiles, g, place, dx);
        }
      }
    }
  }
};

template <class D, int L>
void forward_planes(const PoolShape& s, std::int64_t planes, PoolKind kind, const float* x, float* y,
                    std::byte* index) {
  const Pool<D, L> pool{s};
  const std::int64_t in = s.h * s.w * L, out = s.out_h() * s.out_w() * L;
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t half = 0; half < L; half += static_cast<std::int64_t>(hn::Lanes(D())))
      pool.forward(kind, x + p * in + half, y + p * out + half,
                   index ? index + (p * out + half) * pool.index_bytes : nullptr);
}

template <class D, int L>
void backward_planes(const PoolShape& s, std::int64_t planes, PoolKind kind, const float* dy, const std::byte* index,
                     float* dx) {
  const Pool<D, L> pool{s};
  const std::int64_t in = s.h * s.w * L, out = s.out_h() * s.out_w() * L;
  for (std::int64_t p = 0; p < planes; ++p)
    for (std::int64_t half = 0; half < L; half += static_cast<std::int64_t>(hn::Lanes(D())))
      pool.backward(kind, dy + p * out + half, index ? index + (p * out + half) * pool.index_bytes : nullptr,
                    dx + p * in + half);
}

void forward(const PoolShape& s, std::int64_t planes, int lanes, PoolKind kind, const float* x, float* y,
             std::byte* index) {
  lanes == 8 ? forward_planes<hn::CappedTag<float, 8>, 8>(s, planes, kind, x, y, index)
             : forward_planes<hn::CappedTag<float, 1>, 1>(s, planes, kind, x, y, index);
}

void backward(const PoolShape& s, std::int64_t planes, int lanes, PoolKind kind, const float* dy,
              const std::byte* index, float* dx) {
  lanes == 8 ? backward_planes<hn::CappedTag<float, 8>, 8>(s, planes, kind, dy, index, dx)
             : backward_planes<hn::CappedTag<float, 1>, 1>(s, planes, kind, dy, index, dx);
}

}  // namespace echelon::kernels::pooling::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace pooling {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

// The stack of planes that a layout is.
struct Stack {
  std::int64_t planes;
  int lanes;
  Stack(const PoolShape& s, Layout layout)
      : planes(layout == Layout::plain      ? s.n * s.c
               : layout == Layout::channel8 ? s.n * (s.c / 8)
                                            : (s.n + 7) / 8 * s.c),
        lanes(layout == Layout::plain ? 1 : 8) {}
};
}  // namespace
}  // namespace pooling

using namespace pooling;

std::string problem_with(const PoolShape& s) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1)
    return fmt::format("sizes must be positive, but the input is {}", to_string(s.in_shape()));
  if (s.kh < 1 || s.kw < 1 || s.stride_h < 1 || s.stride_w < 1)
    return fmt::format("kernel {}x{} and stride {}x{} must be positive", s.kh, s.kw, s.stride_h, s.stride_w);
  if (s.pad_h < 0 || s.pad_w < 0 || s.pad_h > s.kh / 2 || s.pad_w > s.kw / 2)
    return fmt::format("padding {}x{} must be between 0 and half of the kernel {}x{}", s.pad_h, s.pad_w, s.kh, s.kw);
  if (s.h + 2 * s.pad_h < s.kh || s.w + 2 * s.pad_w < s.kw)
    return fmt::format("the kernel {}x{} is larger than the image {}x{} with padding {}x{}", s.kh, s.kw, s.h, s.w,
                       s.pad_h, s.pad_w);
  return {};
}

DType pool_index_type(const PoolShape& s) { return s.kh * s.kw <= 256 ? DType::u8 : DType::i32; }

void pool_forward(const PoolShape& s, PoolKind kind, Layout layout, const float* x, float* y, std::byte* indices) {
  const Stack stack(s, layout);
  HWY_DYNAMIC_DISPATCH(forward)
  (s, stack.planes, stack.lanes, kind, x, y, indices);
}

void pool_backward(const PoolShape& s, PoolKind kind, Layout layout, const float* dy, const std::byte* indices,
                   float* dx) {
  const Stack stack(s, layout);
  HWY_DYNAMIC_DISPATCH(backward)
  (s, stack.planes, stack.lanes, kind, dy, indices, dx);
}

}  // namespace echelon::kernels
#endif
