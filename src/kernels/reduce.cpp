#include "kernels/reduce.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_FLATTEN double sum(const float* x, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR { return at.load(x); });
}

HWY_FLATTEN double dot(const float* x, const float* y, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR { return hn::Mul(at.load(x), at.load(y)); });
}

HWY_FLATTEN double squared_norm(const float* x, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    const V v = at.load(x);
    return hn::Mul(v, v);
  });
}

// The greatest |x| as bits: non-negative floats are ordered like integers, infinity above all numbers, NaN above that.
HWY_FLATTEN std::int32_t max_abs_bits(const float* x, std::size_t n) {
  const hn::RebindToSigned<D> di;
  auto greatest0 = hn::Zero(di), greatest1 = hn::Zero(di);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    greatest0 = hn::Max(greatest0, hn::BitCast(di, hn::Abs(at.load(x))));
    std::swap(greatest0, greatest1);
  });
  return hn::GetLane(hn::MaxOfLanes(di, hn::Max(greatest0, greatest1)));
}

HWY_FLATTEN void column_sum(const float* x, std::size_t rows, std::size_t cols, float* out) {
  for_each_vector(cols, [&](auto at) HWY_ATTR { at.store(hn::Zero(D()), out); });
  // Eight rows at a time, far apart: memory serves eight streams faster than one, and out is touched once for them.
  const std::size_t eighth = rows / 8, apart = eighth * cols;
  for (std::size_t r = 0; r < eighth; ++r) {
    const float* p = x + r * cols;
    for_each_vector(cols, [&](auto at) HWY_ATTR {
      const V s01 = hn::Add(at.load(p), at.load(p + apart));
      const V s23 = hn::Add(at.load(p + 2 * apart), at.load(p + 3 * apart));
      const V s45 = hn::Add(at.load(p + 4 * apart), at.load(p + 5 * apart));
      const V s67 = hn::Add(at.load(p + 6 * apart), at.load(p + 7 * apart));
      at.store(hn::Add(at.load(out), hn::Add(hn::Add(s01, s23), hn::Add(s45, s67))), out);
    });
  }
  for (std::size_t r = 8 * eighth; r < rows; ++r)
    for_each_vector(cols, [&](auto at) HWY_ATTR { at.store(hn::Add(at.load(out), at.load(x + r * cols)), out); });
}

template <bool relu>
HWY_INLINE V activate(V v) {
  return relu ? hn::Max(hn::Zero(D()), v) : v;
}

template <bool relu>
HWY_FLATTEN void add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols) {
  for (std::size_t r = 0; r < rows; ++r, y += cols)
    for_each_vector<4>(cols,
                       [&](auto at) HWY_ATTR { at.store(activate<relu>(hn::Add(at.load(y), at.load(bias))), y); });
}

HWY_FLATTEN void add_constant(float* y, float value, std::size_t n) {
  const V v = set(value);
  for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(hn::Add(at.load(y), v), y); });
}

// Sums `count` groups of eight consecutive floats lane by lane, in four interleaved partial sums.
HWY_INLINE Wide<8> sum_of_eights(const float* x, std::size_t count) {
  Wide<8> partial[4] = {Wide<8>::zero(), Wide<8>::zero(), Wide<8>::zero(), Wide<8>::zero()};
  std::size_t p = 0;
  for (; p + 4 <= count; p += 4)
    for (std::size_t k = 0; k < 4; ++k) partial[k].add(Wide<8>::load(x + (p + k) * 8));
  for (std::size_t k = 0; p < count; ++p, ++k) partial[k].add(Wide<8>::load(x + p * 8));
  partial[0].add(partial[2]);
  partial[1].add(partial[3]);
  partial[0].add(partial[1]);
  return partial[0];
}

HWY_FLATTEN void channel_sum(const float* x, Layout layout, ImageExtents e, float* out) {
  // Channels in groups that lie side by side in memory, so that it is read in long runs; totals in double.
  constexpr std::size_t most = 64;
  const std::size_t pixels = e.h * e.w, samples = layout == Layout::batch8 ? 8 : 1;
  for (std::size_t first = 0; first < e.c; first += most) {
    const std::size_t count = e.c - first < most ? e.c - first : most;
    double total[most] = {};
    for (std::size_t n = 0; n < e.n; n += samples) {
      const float* p = x + (n * e.c + first * samples) * pixels;
      float lane[8];
      switch (layout) {
        case Layout::plain:
          for (std::size_t c = 0; c < count; ++c) total[c] += sum(p + c * pixels, pixels);
          break;
        case Layout::channel8:
          for (std::size_t c = 0; c < count; c += 8) {
            sum_of_eights(p + c * pixels, pixels).store(lane);
            for (std::size_t k = 0; k < 8; ++k) total[c + k] += static_cast<double>(lane[k]);
          }
          break;
        case Layout::batch8:
          for (std::size_t c = 0; c < count; ++c) {
            sum_of_eights(p + c * pixels * 8, pixels).store(lane);
            for (std::size_t k = 0; k < 8 && n + k < e.n; ++k) total[c] += static_cast<double>(lane[k]);
          }
          break;
      }
    }
    for (std::size_t c = 0; c < count; ++c) out[first + c] = static_cast<float>(total[c]);
  }
}

HWY_FLATTEN void channel_bias(float* y, ImageExtents e, const float* bias) {
  const std::size_t pixels = e.h * e.w;
  for (std::size_t n = 0; n < e.n; ++n)
    for (std::size_t c = 0; c < e.c; ++c, y += pixels) add_constant(y, bias[c], pixels);
}

HWY_FLATTEN void row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu) {
  relu ? add_row_bias<true>(y, bias, rows, cols) : add_row_bias<false>(y, bias, rows, cols);
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>

namespace echelon::kernels {

HWY_EXPORT(sum);
HWY_EXPORT(dot);
HWY_EXPORT(squared_norm);
HWY_EXPORT(max_abs_bits);
HWY_EXPORT(column_sum);
HWY_EXPORT(channel_sum);
HWY_EXPORT(row_bias);
HWY_EXPORT(channel_bias);

double sum(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum)(x, n); }
double dot(const float* x, const float* y, std::size_t n) { return HWY_DYNAMIC_DISPATCH(dot)(x, y, n); }
double squared_norm(const float* x, std::size_t n) { return HWY_DYNAMIC_DISPATCH(squared_norm)(x, n); }
float max_abs(const float* x, std::size_t n) { return std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(max_abs_bits)(x, n)); }
void column_sum(const float* x, std::size_t rows, std::size_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(column_sum)(x, rows, cols, out);
}
void add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu) {
  HWY_DYNAMIC_DISPATCH(row_bias)(y, bias, rows, cols, relu);
}
void channel_sum(const float* x, Layout layout, ImageExtents e, float* out) {
  HWY_DYNAMIC_DISPATCH(channel_sum)(x, layout, e, out);
}
void add_channel_bias(float* y, ImageExtents e, const float* bias) { HWY_DYNAMIC_DISPATCH(channel_bias)(y, e, bias); }

}  // namespace echelon::kernels
#endif
