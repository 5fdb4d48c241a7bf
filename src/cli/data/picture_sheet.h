#pragma once
// Pictures [channels, height, width] beside and below each other on one sheet, with a margin.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image.h"
#include "tensor/shape.h"

namespace echelon::cli {

class Sheet {
 public:
  Sheet(const Shape& picture, std::int64_t columns, std::int64_t rows)
      : channels_(picture[0]),
        h_(picture[1]),
        w_(picture[2]),
        width_(columns * (w_ + 2) + 2),
        height_(rows * (h_ + 2) + 2),
        pixels_(static_cast<std::size_t>(width_ * height_ * channels_), 255) {}

  // `low` becomes black, `high` white.
  void put(std::span<const float> picture, std::int64_t column, std::int64_t row, float low, float high) {
    for (std::int64_t c = 0; c < channels_; ++c)
      for (std::int64_t y = 0; y < h_; ++y)
        for (std::int64_t x = 0; x < w_; ++x) {
          const float v = (picture[static_cast<std::size_t>((c * h_ + y) * w_ + x)] - low) / (high - low);
          const std::int64_t at = ((row * (h_ + 2) + 2 + y) * width_ + column * (w_ + 2) + 2 + x) * channels_ + c;
          pixels_[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(std::clamp(v, 0.0f, 1.0f) * 255);
        }
  }
  std::vector<std::byte> png() const {
    return data::encode_png(pixels_, {height_, width_}, static_cast<int>(channels_));
  }

 private:
  std::int64_t channels_, h_, w_, width_, height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace echelon::cli
