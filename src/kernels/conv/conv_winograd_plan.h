#pragma once
// The geometry that conv_winograd's parts share. Internal to kernels/.

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv.h"
#include "tensor/buffer.h"

namespace echelon::kernels::winograd {

constexpr std::int64_t points = 36;  // products of a tile
constexpr std::int64_t tile = 4;     // its outputs, each way

// The tiles of all samples, numbered sample by sample, row by row.
struct Tiles {
  std::int64_t n, rows, cols;
  std::int64_t count() const { return n * rows * cols; }

  // Walks over tiles [first, last): act(number within the range, sample, row, column).
  template <typename Act>
  void walk(std::int64_t first, std::int64_t last, const Act& act) const {
    std::int64_t sample = first / (rows * cols), row = first / cols % rows, col = first % cols;
    for (std::int64_t t = first; t < last; ++t) {
      act(t - first, sample, row, col);
      if (++col < cols) continue;
      col = 0;
      if (++row < rows) continue;
      row = 0, ++sample;
    }
  }
};

// A convolution as the forward kernel sees it: backward data is one too, with weights transposed and turned around.
struct Geometry {
  Tiles tiles;
  std::int64_t in_c, in_h, in_w, out_c, out_h, out_w;
  std::int64_t pad_h, pad_w;
  std::int64_t weight_out, weight_in;  // distance of 3x3 kernels between output and input channels, in floats
  bool turned;                         // kernels rotated by half a turn

  std::int64_t in_blocks() const { return in_c / 8; }
  std::int64_t out_blocks() const { return out_c / 8; }
};

inline std::int64_t in_tiles(std::int64_t extent) { return (extent + tile - 1) / tile; }

inline Geometry forward_geometry(const ConvShape& s) {
  return {{s.n, in_tiles(s.out_h()), in_tiles(s.out_w())},
          s.c,
          s.h,
          s.w,
          s.out_c,
          s.out_h(),
          s.out_w(),
          s.pad_h,
          s.pad_w,
          s.c * 9,
          9,
          false};
}

inline Geometry backward_data_geometry(const ConvShape& s) {
  return {{s.n, in_tiles(s.h), in_tiles(s.w)},
          s.out_c,
          s.out_h(),
          s.out_w(),
          s.c,
          s.h,
          s.w,
          2 - s.pad_h,
          2 - s.pad_w,
          9,
          s.c * 9,
          true};
}

// The distance between the parts of consecutive points, each of `floats`: an odd number of cache lines, so that the 36
// places which a transform writes or reads together fall into different sets of the cache.
inline std::int64_t spread(std::int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }

inline std::size_t bytes(std::int64_t floats) { return aligned(static_cast<std::size_t>(floats) * sizeof(float)); }

}  // namespace echelon::kernels::winograd
