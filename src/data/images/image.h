#pragma once
// Pictures: PNG (libpng) and JPEG (libjpeg) decoded, brought to one size and number of channels, and written as PNG.
// The header is checked before anything is allocated: at most 16,384 pixels a side and 64 million in all.
// Errors: BadInput naming the picture. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/scratch.h"

namespace echelon::data {

struct ImageExtent {
  std::int64_t height = 0, width = 0;
};

// Decodes into `pixels`: [height, width, channels] bytes, with 1 (grey) or 3 (red, green, blue) channels whatever the
// file has. Transparency is dropped.
ImageExtent decode_image(std::span<const std::byte> file, std::string_view name, int channels, Scratch& pixels);

// BadInput if the file is none of the two, cut off or damaged, as far as that can be told without decoding it: a PNG's
// chunks have check sums, a JPEG has an end.
void check_image(std::span<const std::byte> file, std::string_view name);

// How a picture fills the extent that a network expects.
enum class Fit {
  stretch,  // both sides scaled on their own
  cover,    // scaled evenly until the extent is covered, the rest cut off evenly on both sides
};

// Resamples `pixels` (as decode_image leaves them) to [channels, to.height, to.width] numbers from 0 to 1: a triangle
// filter, widened when shrinking so that no pixel is left out.
void resize_image(std::span<const std::byte> pixels, ImageExtent from, int channels, ImageExtent to, Fit fit,
                  float* out);

// A PNG file of [height, width, channels] bytes.
std::vector<std::byte> encode_png(std::span<const std::uint8_t> pixels, ImageExtent extent, int channels);

}  // namespace echelon::data
