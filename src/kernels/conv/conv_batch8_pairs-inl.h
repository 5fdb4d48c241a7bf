// The tiles of conv_batch8.cpp where vectors have sixteen numbers: two blocks of eight samples side by side. They are
// two neighbouring pixels of one channel (for the output), or one pixel of two channels (for the weights' gradient).
// Every number keeps its lane's order of sums, so the bits are those of tiles of eight. Compiled once per target.

#if defined(ECHELON_KERNELS_CONV_BATCH8_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_CONV_BATCH8_PAIRS_INL_H
#undef ECHELON_KERNELS_CONV_BATCH8_PAIRS_INL_H
#else
#define ECHELON_KERNELS_CONV_BATCH8_PAIRS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv_batch8_plan.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::batch8 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Pair = hn::CappedTag<float, 16>;
inline constexpr bool has_pairs = hn::MaxLanes(Pair()) == 16;

HWY_INLINE hn::Vec<Pair> load_pair(const float* first, const float* second) {
  const hn::Half<Pair> half;
  return hn::Combine(Pair(), hn::LoadU(half, second), hn::LoadU(half, first));
}

HWY_INLINE void store_pair(hn::Vec<Pair> v, float* first, float* second) {
  const hn::Half<Pair> half;
  hn::StoreU(hn::LowerHalf(half, v), half, first);
  hn::StoreU(hn::UpperHalf(half, v), half, second);
}

// CO out channels of PAIRS pairs of neighbouring pixels; `side_by_side` when these are neighbours in the source too.
template <int CO, int PAIRS, bool side_by_side>
HWY_INLINE void sum_pairs(const TapConv& t, Columns::Taps taps, const float* x, const float* w, const float* bias,
                          hn::Vec<Pair> (&sum)[CO][PAIRS]) {
  const Pair d;
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c) {
    const auto b = bias ? hn::Set(d, bias[c]) : hn::Zero(d);
#pragma GCC unroll 8
    for (int p = 0; p < PAIRS; ++p) sum[c][p] = b;
  }
  const Tap *begin = t.taps.data() + taps.begin, *end = t.taps.data() + taps.end;
  const std::int64_t px = side_by_side ? lanes : t.src_px;
  for (std::int64_t channel = 0; channel < t.channels; ++channel, x += t.src_plane, w += t.tap_count * CO)
    for (const Tap* tap = begin; tap != end; ++tap) {
      const float *from = x + tap->src, *weights = w + tap->weight;
      hn::Vec<Pair> in[PAIRS];
#pragma GCC unroll 8
      for (int p = 0; p < PAIRS; ++p)
        in[p] = side_by_side ? hn::LoadU(d, from + 2 * p * px) : load_pair(from + 2 * p * px, from + (2 * p + 1) * px);
#pragma GCC unroll 8
      for (int c = 0; c < CO; ++c) {
        const auto weight = hn::Set(d, weights[c]);
#pragma GCC unroll 8
        for (int p = 0; p < PAIRS; ++p) sum[c][p] = hn::MulAdd(in[p], weight, sum[c][p]);
      }
    }
}

template <int CO, int PAIRS>
HWY_NOINLINE void tile_of_pairs(const TapConv& t, Columns::Taps taps, const float* x, const float* w, const float* bias,
                                bool relu, float* y) {
  hn::Vec<Pair> sum[CO][PAIRS];
  if (t.src_px == lanes)
    sum_pairs<CO, PAIRS, true>(t, taps, x, w, bias, sum);
  else
    sum_pairs<CO, PAIRS, false>(t, taps, x, w, bias, sum);
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c)
#pragma GCC unroll 8
    for (int p = 0; p < PAIRS; ++p) {
      float* to = y + c * t.out_plane + 2 * p * t.out_px;
      store_pair(relu ? hn::Max(sum[c][p], hn::Zero(Pair())) : sum[c][p], to, to + t.out_px);
    }
}

// The weight gradient of PAIRS pairs of channels x TP taps over `rows` rows of one block, added to `sums`.
template <int PAIRS, int TP>
HWY_NOINLINE void gradient_tile_of_pairs(const TapConv& t, std::int64_t rows, const float* x, const std::int32_t* taps,
                                         const float* dy, float* sums) {
  const std::int64_t channel = t.count() * lanes;  // distance in `sums`
  hn::Vec<Pair> sum[PAIRS][TP];
  const float* tap[TP];
#pragma GCC unroll 8
  for (int k = 0; k < TP; ++k) tap[k] = x + taps[k];
#pragma GCC unroll 8
  for (int c = 0; c < PAIRS; ++c)
#pragma GCC unroll 8
    for (int k = 0; k < TP; ++k) {
      const float* from = sums + 2 * c * channel + k * lanes;
      sum[c][k] = load_pair(from, from + channel);
    }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * t.src_row, out = r * t.out_row;
    for (std::int64_t i = 0; i < t.cols; ++i) {
      hn::Vec<Pair> g[PAIRS];
#pragma GCC unroll 8
      for (int c = 0; c < PAIRS; ++c) {
        const float* from = dy + 2 * c * t.out_plane + out + i * lanes;
        g[c] = load_pair(from, from + t.out_plane);
      }
#pragma GCC unroll 8
      for (int k = 0; k < TP; ++k) {
        const float* from = tap[k] + row + i * t.src_px;
        const auto in = load_pair(from, from);
#pragma GCC unroll 8
        for (int c = 0; c < PAIRS; ++c) sum[c][k] = hn::MulAdd(in, g[c], sum[c][k]);
      }
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < PAIRS; ++c)
#pragma GCC unroll 8
    for (int k = 0; k < TP; ++k) {
      float* to = sums + 2 * c * channel + k * lanes;
      store_pair(sum[c][k], to, to + channel);
    }
}

// All taps of PAIRS pairs of channels.
template <int PAIRS>
HWY_INLINE void gradient_pairs(const TapConv& t, std::int64_t rows, const float* x, const float* dy, float* sums) {
  using Run = void (*)(const TapConv&, std::int64_t, const float*, const std::int32_t*, const float*, float*);
  constexpr int most = PAIRS == 4 ? 6 : 8;
  constexpr Run run[] = {gradient_tile_of_pairs<PAIRS, 1>,
                         gradient_tile_of_pairs<PAIRS, 2>,
                         gradient_tile_of_pairs<PAIRS, 3>,
                         gradient_tile_of_pairs<PAIRS, 4>,
                         gradient_tile_of_pairs<PAIRS, 5>,
                         gradient_tile_of_pairs<PAIRS, 6>,
                         gradient_tile_of_pairs<PAIRS, std::min(7, most)>,
                         gradient_tile_of_pairs<PAIRS, most>};
  const Split tiles = split(t.count(), most);
  for (std::int64_t i = 0; i < tiles.parts; ++i) {
    const std::int64_t k = tiles.start(i);
    run[tiles.size(i) - 1](t, rows, x, t.all.data() + k, dy, sums + k * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace echelon::kernels::batch8
HWY_AFTER_NAMESPACE();

#endif
