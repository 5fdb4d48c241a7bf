#include "kernels/conv/conv_batch8.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/conv/conv_batch8_plan.h"
#include "tensor/buffer.h"

#include "kernels/simd/simd_targets_512.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_batch8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/conv_batch8_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::batch8 {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<float, 8> d;  // narrower than eight lanes on SSE: the sweeps below then visit both halves
using V = hn::Vec<decltype(d)>;

// CO out channels of PX neighbouring pixels. `w` is packed: the CO weights of tap 0, of tap 1, ...
template <int CO, int PX>
HWY_INLINE void tile(const TapConv& t, Columns::Taps taps, const float* x, const float* w, const float* bias, bool relu,
                     float* y) {
  V sum[CO][PX];
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c) {
    const V b = bias ? hn::Set(d, bias[c]) : hn::Zero(d);
#pragma GCC unroll 8
    for (int p = 0; p < PX; ++p) sum[c][p] = b;
  }
  const Tap *begin = t.taps.data() + taps.begin, *end = t.taps.data() + taps.end;
  const std::int64_t px = t.src_px;
  for (std::int64_t channel = 0; channel < t.channels; ++channel, x += t.src_plane, w += t.tap_count * CO)
    for (const Tap* tap = begin; tap != end; ++tap) {
      const float *from = x + tap->src, *weights = w + tap->weight;
      V in[PX];
#pragma GCC unroll 8
      for (int p = 0; p < PX; ++p) in[p] = hn::LoadU(d, from + p * px);
#pragma GCC unroll 8
      for (int c = 0; c < CO; ++c) {
        const V weight = hn::Set(d, weights[c]);
#pragma GCC unroll 8
        for (int p = 0; p < PX; ++p) sum[c][p] = hn::MulAdd(in[p], weight, sum[c][p]);
      }
    }
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c)
#pragma GCC unroll 8
    for (int p = 0; p < PX; ++p)
      hn::StoreU(relu ? hn::Max(sum[c][p], hn::Zero(d)) : sum[c][p], d, y + c * t.out_plane + p * t.out_px);
}

// Output row j of CO channels, in pairs of pixels.
template <int CO, int... pairs_less_one>
HWY_NOINLINE void row_of_pairs(std::integer_sequence<int, pairs_less_one...>, const TapConv& t, std::int64_t j,
                               const float* x, const float* w, const float* bias, bool relu, float* y) {
  using Run = void (*)(const TapConv&, Columns::Taps, const float*, const float*, const float*, bool, float*);
  constexpr Run run[] = {tile_of_pairs<CO, pairs_less_one + 1>...};
  const Columns& columns = t.pairs[CO];
  const Columns::Taps* taps = columns.taps.data() + t.row_class[j] * columns.tiles.size();
  for (const Columns::Tile& at : columns.tiles) {
    const float* from = x + at.at * t.src_px;
    float* to = y + at.at * t.out_px;
    const Columns::Taps list = *taps++;
    if (at.width > 1) run[at.width / 2 - 1](t, list, from, w, bias, relu, to);
    const std::int64_t last = at.width - 1;
    if (at.width % 2) tile<CO, 1>(t, list, from + last * t.src_px, w, bias, relu, to + last * t.out_px);
  }
}

// Output row j of CO channels.
template <int CO>
HWY_NOINLINE void row(const TapConv& t, std::int64_t j, const float* x, const float* w, const float* bias, bool relu,
                      float* y) {
  if constexpr (has_pairs)
    return row_of_pairs<CO>(std::make_integer_sequence<int, max_pairs[CO]>(), t, j, x, w, bias, relu, y);
  const Columns& columns = t.columns[CO];
  const Columns::Taps* taps = columns.taps.data() + t.row_class[j] * columns.tiles.size();
  for (const Columns::Tile& at : columns.tiles) {
    const float* from = x + at.at * t.src_px;
    float* to = y + at.at * t.out_px;
    const Columns::Taps list = *taps++;
    switch (at.width) {
      case 1: tile<CO, 1>(t, list, from, w, bias, relu, to); break;
      case 2: tile<CO, 2>(t, list, from, w, bias, relu, to); break;
      case 3:
        if constexpr (max_pixels[CO] >= 3) tile<CO, 3>(t, list, from, w, bias, relu, to);
        break;
      case 4:
        if constexpr (max_pixels[CO] >= 4) tile<CO, 4>(t, list, from, w, bias, relu, to);
        break;
      case 5:
        if constexpr (max_pixels[CO] >= 5) tile<CO, 5>(t, list, from, w, bias, relu, to);
        break;
      case 6:
        if constexpr (max_pixels[CO] >= 6) tile<CO, 6>(t, list, from, w, bias, relu, to);
        break;
      case 7:
        if constexpr (max_pixels[CO] >= 7) tile<CO, 7>(t, list, from, w, bias, relu, to);
        break;
      case 8:
        if constexpr (max_pixels[CO] >= 8) tile<CO, 8>(t, list, from, w, bias, relu, to);
        break;
    }
  }
}

// Puts the weights into the order in which `tile` reads them.
void pack(const TapConv& t, int groups, const float* w, float* packed) {
  const Split tiles = channel_split(t.out_channels);
  for (int g = 0; g < groups; ++g)
    for (std::int64_t i = 0; i < tiles.parts; ++i) {
      const float* from = w + g * t.weight_group + tiles.start(i) * t.weight_channel;
      for (const std::int32_t at : t.weights)
        for (std::int64_t c = 0; c < tiles.size(i); ++c) *packed++ = from[at + c * t.weight_channel];
    }
}

// All rows, channels and groups of one block of eight samples; `packed` as written by `pack`.
void convolve(const TapConv& t, int groups, const float* src, const float* packed, const float* bias, bool relu,
              float* out) {
  const Split tiles = channel_split(t.out_channels);
  for (int g = 0; g < groups; ++g)
    for (std::int64_t half = 0; half < lanes; half += static_cast<std::int64_t>(hn::Lanes(d)))
      for (std::int64_t j = 0; j < t.rows; ++j) {
        const float* x = src + g * t.src_group + j * t.src_row + half;
        float* y = out + g * t.out_channels * t.out_plane + t.out_start + j * t.out_row + half;
        for (std::int64_t i = 0; i < tiles.parts; ++i) {
          const std::int64_t c = tiles.start(i);
          const float* w = packed + (g * t.out_channels + c) * t.count();
          const float* b = bias ? bias + g * t.out_channels + c : nullptr;
          float* to = y + c * t.out_plane;
          switch (tiles.size(i)) {
            case 1: row<1>(t, j, x, w, b, relu, to); break;
            case 2: row<2>(t, j, x, w, b, relu, to); break;
            case 3: row<3>(t, j, x, w, b, relu, to); break;
            case 4: row<4>(t, j, x, w, b, relu, to); break;
            case 5: row<5>(t, j, x, w, b, relu, to); break;
            case 6: row<6>(t, j, x, w, b, relu, to); break;
          }
        }
      }
}

// The weight gradient of CO channels x TP taps over `rows` rows of one block, added to `sums` ([channel][tap] vectors).
template <int CO, int TP>
HWY_INLINE void gradient_tile(const TapConv& t, std::int64_t rows, const float* x, const std::int32_t* taps,
                              const float* dy, float* sums) {
  V sum[CO][TP];
  const float* tap[TP];
#pragma GCC unroll 8
  for (int k = 0; k < TP; ++k) tap[k] = x + taps[k];
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c)
#pragma GCC unroll 8
    for (int k = 0; k < TP; ++k) sum[c][k] = hn::LoadU(d, sums + (c * t.count() + k) * lanes);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = r * t.src_row, out = r * t.out_row;
    for (std::int64_t i = 0; i < t.cols; ++i) {
      V in[TP];
#pragma GCC unroll 8
      for (int k = 0; k < TP; ++k) in[k] = hn::LoadU(d, tap[k] + row + i * t.src_px);
#pragma GCC unroll 8
      for (int c = 0; c < CO; ++c) {
        const V g = hn::LoadU(d, dy + c * t.out_plane + out + i * lanes);
#pragma GCC unroll 8
        for (int k = 0; k < TP; ++k) sum[c][k] = hn::MulAdd(in[k], g, sum[c][k]);
      }
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < CO; ++c)
#pragma GCC unroll 8
    for (int k = 0; k < TP; ++k) hn::StoreU(sum[c][k], d, sums + (c * t.count() + k) * lanes);
}

// All taps of CO channels.
template <int CO>
HWY_NOINLINE void gradient_channels(const TapConv& t, std::int64_t rows, const float* x, const float* dy, float* sums) {
  constexpr int most = CO >= 4 ? 3 : CO == 3 ? 4 : CO == 2 ? 6 : 8;
  const Split tiles = split(t.count(), most);
  for (std::int64_t i = 0; i < tiles.parts; ++i) {
    const std::int64_t k = tiles.start(i);
    const std::int32_t* taps = t.all.data() + k;
    float* to = sums + k * lanes;
    switch (tiles.size(i)) {
      case 1: gradient_tile<CO, 1>(t, rows, x, taps, dy, to); break;
      case 2: gradient_tile<CO, 2>(t, rows, x, taps, dy, to); break;
      case 3: gradient_tile<CO, 3>(t, rows, x, taps, dy, to); break;
      case 4:
        if constexpr (most >= 4) gradient_tile<CO, 4>(t, rows, x, taps, dy, to);
        break;
      case 5:
        if constexpr (most >= 5) gradient_tile<CO, 5>(t, rows, x, taps, dy, to);
        break;
      case 6:
        if constexpr (most >= 6) gradient_tile<CO, 6>(t, rows, x, taps, dy, to);
        break;
      case 7:
        if constexpr (most >= 7) gradient_tile<CO, 7>(t, rows, x, taps, dy, to);
        break;
      case 8:
        if constexpr (most >= 8) gradient_tile<CO, 8>(t, rows, x, taps, dy, to);
        break;
    }
  }
}

Split gradient_split(std::int64_t channels) {
  if (has_pairs) return split(channels, 8);
  return split(channels, channels % 3 == 0 ? 3 : 4);
}

// One part of gradient_split.
void gradient_of_channels(const TapConv& t, std::int64_t channels, std::int64_t rows, const float* x, const float* dy,
                          float* sums) {
  if constexpr (has_pairs) {
    switch (channels / 2) {
      case 1: gradient_pairs<1>(t, rows, x, dy, sums); break;
      case 2: gradient_pairs<2>(t, rows, x, dy, sums); break;
      case 3: gradient_pairs<3>(t, rows, x, dy, sums); break;
      case 4: gradient_pairs<4>(t, rows, x, dy, sums); break;
    }
    const std::int64_t last = channels - 1;
    if (channels % 2) gradient_channels<1>(t, rows, x, dy + last * t.out_plane, sums + last * t.count() * lanes);
  } else {
    switch (channels) {
      case 1: gradient_channels<1>(t, rows, x, dy, sums); break;
      case 2: gradient_channels<2>(t, rows, x, dy, sums); break;
      case 3: gradient_channels<3>(t, rows, x, dy, sums); break;
      case 4: gradient_channels<4>(t, rows, x, dy, sums); break;
    }
  }
}

// Adds `count` vectors to *sum, in four strands.
HWY_INLINE void add_all(const float* from, std::int64_t count, float* sum) {
  V s0 = hn::LoadU(d, sum), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    s0 = hn::Add(s0, hn::LoadU(d, from + i * lanes));
    s1 = hn::Add(s1, hn::LoadU(d, from + (i + 1) * lanes));
    s2 = hn::Add(s2, hn::LoadU(d, from + (i + 2) * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, from + (i + 3) * lanes));
  }
  for (; i < count; ++i) s0 = hn::Add(s0, hn::LoadU(d, from + i * lanes));
  hn::StoreU(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), d, sum);
}

// One block's contribution to all weight gradients (`sums`) and, if not null, bias gradients (`bias_sums`), as vectors
// whose lanes are samples. Rows are taken in bands that fit the first-level cache together with their source.
void gradient(const TapConv& t, int groups, const float* src, const float* dy, float* sums, float* bias_sums) {
  const Split tiles = gradient_split(t.out_channels);
  const std::int64_t band = std::clamp<std::int64_t>(4096 / (t.out_channels * t.cols * lanes), 1, t.rows);
  for (int g = 0; g < groups; ++g)
    for (std::int64_t half = 0; half < lanes; half += static_cast<std::int64_t>(hn::Lanes(d)))
      for (std::int64_t j = 0; j < t.rows; j += band) {
        const std::int64_t rows = std::min(band, t.rows - j);
        const float* x = src + g * t.src_group + j * t.src_row + half;
        for (std::int64_t i = 0; i < tiles.parts; ++i) {
          const std::int64_t c = g * t.out_channels + tiles.start(i);
          const float* from = dy + c * t.out_plane + j * t.out_row + half;
          gradient_of_channels(t, tiles.size(i), rows, x, from, sums + c * t.count() * lanes + half);
          if (!bias_sums) continue;
          for (std::int64_t k = 0; k < tiles.size(i); ++k)
            add_all(from + k * t.out_plane, rows * t.cols, bias_sums + (c + k) * lanes + half);
        }
      }
}

}  // namespace HWY_NAMESPACE
}  // namespace echelon::kernels::batch8
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace batch8 {
HWY_EXPORT(pack);
HWY_EXPORT(convolve);
HWY_EXPORT(gradient);

namespace {

std::int64_t blocks(const ConvShape& s) { return (s.n + lanes - 1) / lanes; }

// One block of the source with its frame of zeros, or the block itself if it has none.
const float* framed(const Source& src, const float* block, float* scratch) {
  if (!src.framed()) return block;
  const std::size_t row = static_cast<std::size_t>(src.w * lanes), left = static_cast<std::size_t>(src.left * lanes);
  const std::size_t right = static_cast<std::size_t>(src.right * lanes);
  const auto zero = [](float* at, std::size_t count) { std::memset(at, 0, count * sizeof(float)); };
  float* to = scratch;
  for (std::int64_t c = 0; c < src.channels; ++c) {
    zero(to, static_cast<std::size_t>(src.top * src.row()));
    to += src.top * src.row();
    for (std::int64_t y = 0; y < src.h; ++y, block += row, to += src.row()) {
      zero(to, left);
      std::memcpy(to + left, block, row * sizeof(float));
      zero(to + left + row, right);
    }
    zero(to, static_cast<std::size_t>(src.bottom * src.row()));
    to += src.bottom * src.row();
  }
  return scratch;
}

std::size_t bytes(std::int64_t floats) { return aligned(static_cast<std::size_t>(floats) * sizeof(float)); }

// A sum over the lanes, always in the same order.
float fold(const float* v) { return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])); }

}  // namespace
}  // namespace batch8

using namespace batch8;

std::size_t conv_batch8_forward_scratch(const ConvShape& s) {
  return bytes(s.weights()) + bytes(forward_source(s).scratch());
}

std::function<void()> make_conv_batch8_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                                               bool relu, float* y, std::byte* scratch) {
  auto taps = std::make_shared<const TapConv>(forward_taps(s));
  float* packed = reinterpret_cast<float*>(scratch);
  float* frame = reinterpret_cast<float*>(scratch + bytes(s.weights()));
  return [s, x, w, bias, relu, y, packed, frame, src = forward_source(s), taps = std::move(taps)] {
    HWY_DYNAMIC_DISPATCH(pack)(*taps, s.groups, w, packed);
    const std::int64_t in = s.c * s.h * s.w * lanes, out = s.out_c * s.out_h() * s.out_w() * lanes;
    for (std::int64_t b = 0; b < blocks(s); ++b) HWY_DYNAMIC_DISPATCH(convolve)
    (*taps, s.groups, framed(src, x + b * in, frame), packed, bias, relu, y + b * out);
  };
}

std::size_t conv_batch8_backward_data_scratch(const ConvShape& s) {
  return bytes(s.weights()) + bytes(backward_data_source(s).scratch());
}

std::function<void()> make_conv_batch8_backward_data(const ConvShape& s, const float* dy, const float* w, float* dx,
                                                     std::byte* scratch) {
  auto phases = std::make_shared<const std::vector<TapConv>>(backward_data_taps(s));
  float* packed = reinterpret_cast<float*>(scratch);
  float* frame = reinterpret_cast<float*>(scratch + bytes(s.weights()));
  return [s, dy, w, dx, packed, frame, src = backward_data_source(s), phases = std::move(phases)] {
    float* to = packed;  // the phases share out the taps, so together they fill exactly the weights' size
    for (const TapConv& t : *phases) {
      HWY_DYNAMIC_DISPATCH(pack)(t, s.groups, w, to);
      to += t.packed(s.groups);
    }
    const std::int64_t in = s.c * s.h * s.w * lanes, out = s.out_c * s.out_h() * s.out_w() * lanes;
    for (std::int64_t b = 0; b < blocks(s); ++b) {
      const float* from = framed(src, dy + b * out, frame);
      const float* weights = packed;
      for (const TapConv& t : *phases) {
        HWY_DYNAMIC_DISPATCH(convolve)(t, s.groups, from, weights, nullptr, false, dx + b * in);
        weights += t.packed(s.groups);
      }
    }
  };
}

std::size_t conv_batch8_backward_weights_scratch(const ConvShape& s) {
  return bytes(s.weights() * lanes) + bytes(s.out_c * lanes) + bytes(forward_source(s).scratch());
}

std::function<void()> make_conv_batch8_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                                                        float* db, std::byte* scratch) {
  auto taps = std::make_shared<const TapConv>(forward_taps(s));
  float* sums = reinterpret_cast<float*>(scratch);
  float* bias_sums = reinterpret_cast<float*>(scratch + bytes(s.weights() * lanes));
  float* frame = reinterpret_cast<float*>(scratch + bytes(s.weights() * lanes) + bytes(s.out_c * lanes));
  return [s, x, dy, dw, db, sums, bias_sums, frame, src = forward_source(s), taps = std::move(taps)] {
    const std::int64_t in = s.c * s.h * s.w * lanes, out = s.out_c * s.out_h() * s.out_w() * lanes;
    std::fill_n(sums, s.weights() * lanes, 0.0f);
    std::fill_n(bias_sums, s.out_c * lanes, 0.0f);
    // The last block goes first: when it is not full, its idle lanes are wiped before the others are added.
    for (std::int64_t b = blocks(s) - 1; b >= 0; --b) {
      HWY_DYNAMIC_DISPATCH(gradient)
      (*taps, s.groups, framed(src, x + b * in, frame), dy + b * out, sums, db ? bias_sums : nullptr);
      if (b != blocks(s) - 1 || s.n % lanes == 0) continue;
      for (std::int64_t lane = s.n % lanes; lane < lanes; ++lane) {
        for (std::int64_t i = 0; i < s.weights(); ++i) sums[i * lanes + lane] = 0.0f;
        for (std::int64_t i = 0; i < s.out_c; ++i) bias_sums[i * lanes + lane] = 0.0f;
      }
    }
    for (std::int64_t i = 0; i < s.weights(); ++i) dw[i] = fold(sums + i * lanes);
    if (db)
      for (std::int64_t i = 0; i < s.out_c; ++i) db[i] = fold(bias_sums + i * lanes);
  };
}

}  // namespace echelon::kernels
#endif
