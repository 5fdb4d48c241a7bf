#pragma once
// What conv_batch8 works out when it is bound: offsets and extents, all in floats. Internal to kernels/.

#include <cstdint>
#include <vector>

#include "kernels/conv/conv.h"

namespace echelon::kernels::batch8 {

constexpr std::int64_t lanes = 8;

// Tiles of the output hold at most twelve accumulators, so that with operands everything stays in sixteen registers;
// eight are needed to hide the latency of the multiply-add.
constexpr int max_channels = 6;
constexpr int max_pixels[max_channels + 1] = {0, 8, 6, 4, 3, 2, 2};
// With AVX-512 and pairs of pixels: up to 25 accumulators and their operands in 32 registers.
constexpr int max_pairs[max_channels + 1] = {0, 8, 8, 7, 6, 5, 4};

// `parts` sizes that differ by at most one and add up to `total`.
struct Split {
  std::int64_t total, parts;
  std::int64_t start(std::int64_t i) const { return total * i / parts; }
  std::int64_t size(std::int64_t i) const { return start(i + 1) - start(i); }
};
inline Split split(std::int64_t total, std::int64_t most) { return {total, (total + most - 1) / most}; }

// How out channels are cut into tiles: whole tiles of six or four where that is possible.
inline Split channel_split(std::int64_t channels) {
  return split(channels, channels % 6 != 0 && channels % 4 == 0 ? 4 : max_channels);
}

// A stack of `channels` planes, copied into scratch with a frame of zeros (or read where it is, if there is no frame).
struct Source {
  std::int64_t channels, h, w;
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;

  std::int64_t row() const { return (left + w + right) * lanes; }
  std::int64_t plane() const { return (top + h + bottom) * row(); }
  bool framed() const { return top || left || bottom || right; }
  std::int64_t scratch() const { return framed() ? channels * plane() : 0; }
};

// A (ky, kx) of the kernel: where it reads, from the pixel of the source that an output pixel starts at, and where its
// weights are among the packed ones.
struct Tap {
  std::int32_t src, weight;
};

// The columns of one output row, cut into tiles for CO channels; and which taps meet the image in each of them. The
// others would only multiply the frame's zeros.
struct Columns {
  struct Tile {
    std::int32_t at, width;
  };
  struct Taps {
    std::int32_t begin, end;  // in TapConv::taps
  };
  std::vector<Tile> tiles;
  std::vector<Taps> taps;  // [row class][tile]
};

// One tap-list convolution: out[co][j][i] = sum over input channels and taps of source[...] * w[co][channel][tap].
struct TapConv {
  std::vector<Tap> taps;                     // lists for Columns
  std::vector<std::int32_t> row_class;       // of each output row: which taps meet the image there
  Columns columns[max_channels + 1];         // by the channels of a tile
  Columns pairs[max_channels + 1];           // the same in pairs of pixels; the last tile may have half a pair more
  std::vector<std::int32_t> all;             // every (channel, tap)'s place in the source: for the weight gradient
  std::vector<std::int32_t> weights;         // and where its weight lies for out channel 0 of group 0
  std::int64_t tap_count = 0, channels = 0;  // of a kernel; of the source, a group
  std::int64_t rows = 0, cols = 0;
  std::int64_t src_row = 0, src_px = 0, src_plane = 0, src_group = 0;
  std::int64_t out_start = 0, out_row = 0, out_px = 0, out_plane = 0;
  std::int64_t out_channels = 0;                      // a group
  std::int64_t weight_channel = 0, weight_group = 0;  // distance between weights of out channels and of groups

  std::int64_t count() const { return channels * tap_count; }
  std::int64_t packed(int groups) const { return groups * out_channels * count(); }
};

Source forward_source(const ConvShape& shape);
Source backward_data_source(const ConvShape& shape);
TapConv forward_taps(const ConvShape& shape);
std::vector<TapConv> backward_data_taps(const ConvShape& shape);  // one per phase of the stride

}  // namespace echelon::kernels::batch8
