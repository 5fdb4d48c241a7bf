#pragma once
// The sign of each number in one bit. `bytes` need no alignment: (n + 7) / 8 bytes, of which unused bits are zero.
// Thread-safe, allocates nothing.

#include <cstddef>
#include <span>

namespace echelon::codecs {

struct SignMeans {
  float negative = 0, positive = 0;  // of the numbers below zero, and of the others; 0 where there are none
};

// Writes the signs (1: not negative) and returns the means of both kinds.
SignMeans pack_signs(std::span<const float> x, std::byte* bytes);
// out[i] += (or =) the value of bit i.
void add_signs(const std::byte* bytes, SignMeans values, std::span<float> out);
void spread_signs(const std::byte* bytes, SignMeans values, std::span<float> out);

}  // namespace echelon::codecs
