#include "kernels/conv/conv_batch8_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace echelon::kernels::batch8 {
namespace {

// The taps of one dimension: where each stands in the framed source for output position 0, in the kernel's order, and
// which index it has in the kernel.
struct Axis {
  std::vector<std::int64_t> at, k;
  std::int64_t step;           // of the source per output position
  std::int64_t before, image;  // frame, then image

  // The contiguous range of taps of which some output position in [first, last] meets the image.
  std::pair<std::int32_t, std::int32_t> meeting(std::int64_t first, std::int64_t last) const {
    std::int32_t begin = static_cast<std::int32_t>(at.size()), end = 0;
    for (std::int32_t t = 0; t < static_cast<std::int32_t>(at.size()); ++t)
      for (std::int64_t o = first; o <= last; ++o) {
        const std::int64_t position = at[static_cast<std::size_t>(t)] + o * step - before;
        if (position < 0 || position >= image) continue;
        begin = std::min(begin, t), end = std::max(end, t + 1);
      }
    return {std::min(begin, end), end};
  }
};

// Tiles of `unit` columns times the sizes of `tiles`, up to column `cols`.
void cut_columns(Columns& columns, const Split& tiles, std::int64_t unit, std::int64_t cols) {
  for (std::int64_t k = 0; k < tiles.parts; ++k) {
    const std::int64_t at = tiles.start(k) * unit, end = std::min(cols, tiles.start(k + 1) * unit);
    columns.tiles.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(end - at)});
  }
}

// Cuts rows into classes and columns into tiles, and lists the taps of every combination that occurs.
void list_taps(TapConv& t, const Axis& ys, const Axis& xs, std::int64_t src_row) {
  using Range = std::pair<std::int32_t, std::int32_t>;
  std::vector<Range> classes;
  for (std::int64_t j = 0; j < t.rows; ++j) {
    const Range range = ys.meeting(j, j);
    auto found = std::find(classes.begin(), classes.end(), range);
    if (found == classes.end()) found = classes.insert(classes.end(), range);
    t.row_class.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
  const Split channels = channel_split(t.out_channels);
  const auto cols = static_cast<std::int32_t>(xs.at.size());
  for (std::int64_t i = 0; i < channels.parts; ++i) {
    const std::int64_t co = channels.size(i);
    if (!t.columns[co].tiles.empty()) continue;
    cut_columns(t.columns[co], split(t.cols, max_pixels[co]), 1, t.cols);
    cut_columns(t.pairs[co], split((t.cols + 1) / 2, max_pairs[co]), 2, t.cols);
    std::map<std::pair<Range, Range>, Columns::Taps> known;
    for (Columns* columns : {&t.columns[co], &t.pairs[co]})
      for (const Range& rows : classes)
        for (const auto& tile : columns->tiles) {
          const Range range = xs.meeting(tile.at, tile.at + tile.width - 1);
          auto [place, is_new] = known.try_emplace({rows, range});
          if (is_new) {
            place->second.begin = static_cast<std::int32_t>(t.taps.size());
            for (std::int32_t y = rows.first; y < rows.second; ++y)
              for (std::int32_t x = range.first; x < range.second; ++x)
                t.taps.push_back({static_cast<std::int32_t>(ys.at[static_cast<std::size_t>(y)] * src_row +
                                                            xs.at[static_cast<std::size_t>(x)] * lanes),
                                  static_cast<std::int32_t>((y * cols + x) * co)});
            place->second.end = static_cast<std::int32_t>(t.taps.size());
          }
          columns->taps.push_back(place->second);
        }
  }
}

// Every (channel, tap), with `weight(channel, ky, kx)` telling where its weight lies.
template <typename Weight>
void list_all(TapConv& t, const Axis& ys, const Axis& xs, std::int64_t src_row, Weight weight) {
  t.tap_count = static_cast<std::int64_t>(ys.at.size() * xs.at.size());
  for (std::int64_t c = 0; c < t.channels; ++c)
    for (std::size_t y = 0; y < ys.at.size(); ++y)
      for (std::size_t x = 0; x < xs.at.size(); ++x) {
        t.all.push_back(static_cast<std::int32_t>(c * t.src_plane + ys.at[y] * src_row + xs.at[x] * lanes));
        t.weights.push_back(static_cast<std::int32_t>(weight(c, ys.k[y], xs.k[x])));
      }
}

Axis forward_axis(std::int64_t k, int stride, int dilation, std::int64_t before, std::int64_t image) {
  Axis axis{{}, {}, stride, before, image};
  for (std::int64_t i = 0; i < k; ++i) axis.at.push_back(i * dilation), axis.k.push_back(i);
  return axis;
}

// The taps that meet output positions when the input position is phase + j * stride; positions are for j = 0.
Axis backward_axis(std::int64_t phase, std::int64_t k, int stride, int pad, int dilation, std::int64_t before,
                   std::int64_t image) {
  Axis axis{{}, {}, 1, before, image};
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t distance = phase + pad - i * dilation;
    if (distance % stride != 0) continue;
    axis.at.push_back(distance / stride + before), axis.k.push_back(i);
  }
  return axis;
}

// How far taps reach out of [0, out) before and after, over all phases that occur.
std::pair<std::int64_t, std::int64_t> reach(std::int64_t in, std::int64_t out, std::int64_t k, int stride, int pad,
                                            int dilation) {
  std::int64_t before = 0, after = 0;
  for (std::int64_t phase = 0; phase < std::min<std::int64_t>(stride, in); ++phase)
    for (const std::int64_t at : backward_axis(phase, k, stride, pad, dilation, 0, out).at) {
      before = std::max(before, -at);
      after = std::max(after, (in - phase - 1) / stride + at - (out - 1));
    }
  return {before, after};
}

}  // namespace

Source forward_source(const ConvShape& s) {
  const auto far = [](std::int64_t out, int stride, std::int64_t k, int dilation, std::int64_t in, int pad) {
    return std::max<std::int64_t>(0, (out - 1) * stride + (k - 1) * dilation + 1 - in - pad);
  };
  return {s.c,
          s.h,
          s.w,
          s.pad_h,
          s.pad_w,
          far(s.out_h(), s.stride_h, s.kh, s.dilation_h, s.h, s.pad_h),
          far(s.out_w(), s.stride_w, s.kw, s.dilation_w, s.w, s.pad_w)};
}

TapConv forward_taps(const ConvShape& s) {
  const Source src = forward_source(s);
  TapConv t;
  t.channels = s.c / s.groups, t.out_channels = s.out_c / s.groups;
  t.rows = s.out_h(), t.cols = s.out_w();
  t.src_row = s.stride_h * src.row(), t.src_px = s.stride_w * lanes;
  t.src_plane = src.plane(), t.src_group = t.channels * src.plane();
  t.out_row = s.out_w() * lanes, t.out_px = lanes, t.out_plane = s.out_h() * s.out_w() * lanes;
  t.weight_channel = t.channels * s.kh * s.kw, t.weight_group = t.out_channels * t.weight_channel;
  const Axis ys = forward_axis(s.kh, s.stride_h, s.dilation_h, src.top, s.h);
  const Axis xs = forward_axis(s.kw, s.stride_w, s.dilation_w, src.left, s.w);
  list_taps(t, ys, xs, src.row());
  list_all(t, ys, xs, src.row(), [&](auto ci, auto ky, auto kx) { return (ci * s.kh + ky) * s.kw + kx; });
  return t;
}

Source backward_data_source(const ConvShape& s) {
  const auto [top, bottom] = reach(s.h, s.out_h(), s.kh, s.stride_h, s.pad_h, s.dilation_h);
  const auto [left, right] = reach(s.w, s.out_w(), s.kw, s.stride_w, s.pad_w, s.dilation_w);
  return {s.out_c, s.out_h(), s.out_w(), top, left, bottom, right};
}

std::vector<TapConv> backward_data_taps(const ConvShape& s) {
  const Source src = backward_data_source(s);
  std::vector<TapConv> phases;
  for (std::int64_t py = 0; py < std::min<std::int64_t>(s.stride_h, s.h); ++py)
    for (std::int64_t px = 0; px < std::min<std::int64_t>(s.stride_w, s.w); ++px) {
      TapConv t;
      t.channels = s.out_c / s.groups, t.out_channels = s.c / s.groups;
      t.rows = (s.h - py - 1) / s.stride_h + 1, t.cols = (s.w - px - 1) / s.stride_w + 1;
      t.src_row = src.row(), t.src_px = lanes;
      t.src_plane = src.plane(), t.src_group = t.channels * src.plane();
      t.out_start = (py * s.w + px) * lanes;
      t.out_row = s.stride_h * s.w * lanes, t.out_px = s.stride_w * lanes, t.out_plane = s.h * s.w * lanes;
      t.weight_channel = s.kh * s.kw, t.weight_group = t.channels * t.out_channels * t.weight_channel;
      const Axis ys = backward_axis(py, s.kh, s.stride_h, s.pad_h, s.dilation_h, src.top, s.out_h());
      const Axis xs = backward_axis(px, s.kw, s.stride_w, s.pad_w, s.dilation_w, src.left, s.out_w());
      list_taps(t, ys, xs, src.row());
      list_all(t, ys, xs, src.row(),
               [&](auto co, auto ky, auto kx) { return (co * t.out_channels * s.kh + ky) * s.kw + kx; });
      phases.push_back(std::move(t));
    }
  return phases;
}

}  // namespace echelon::kernels::batch8
