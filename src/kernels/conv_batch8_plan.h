#pragma once
// What conv_batch8 works out when it is bound: offsets and extents, all in floats. Internal to kernels/.

#include <cstdint>
#include <vector>

#include "kernels/conv.h"

namespace echelon::kernels::batch8 {

constexpr std::int64_t lanes = 8;

// A stack of `channels` planes, copied into scratch with a frame of zeros (or read where it is, if there is no frame).
struct Source {
  std::int64_t channels, h, w;
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;

  std::int64_t row() const { return (left + w + right) * lanes; }
  std::int64_t plane() const { return (top + h + bottom) * row(); }
  bool framed() const { return top || left || bottom || right; }
  std::int64_t scratch() const { return framed() ? channels * plane() : 0; }
};

// One tap-list convolution: out[co][j][i] = sum over t of source[j * src_row + i * src_px + tap[t]] * w[co][t].
struct TapConv {
  std::vector<std::int32_t> taps;     // of group 0, from the (framed) source's first element
  std::vector<std::int32_t> weights;  // where the weight of (out channel 0 of group 0, tap) lies
  std::int64_t rows = 0, cols = 0;
  std::int64_t src_row = 0, src_px = 0, src_group = 0;
  std::int64_t out_start = 0, out_row = 0, out_px = 0, out_plane = 0;
  std::int64_t out_channels = 0;                      // a group
  std::int64_t weight_channel = 0, weight_group = 0;  // distance between weights of out channels and of groups

  std::int64_t count() const { return static_cast<std::int64_t>(taps.size()); }
  std::int64_t packed(int groups) const { return groups * out_channels * count(); }
};

Source forward_source(const ConvShape& shape);
Source backward_data_source(const ConvShape& shape);
TapConv forward_taps(const ConvShape& shape);
std::vector<TapConv> backward_data_taps(const ConvShape& shape);  // one per phase of the stride

}  // namespace echelon::kernels::batch8
