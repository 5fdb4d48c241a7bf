#pragma once
// A first choice of what may be among the largest numbers above zero and among the largest below it, in one pass: for
// who then finds exactly these (select.h) among the few that are left.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

struct Sides {
  std::size_t above = 0, below = 0;  // of zero
};

// Of every x[i] * scale whose order_bits on its side are at least `above` or `below` (both > 0): i + first, and the
// number. Both have room for as many as x. Returns how many they are, and adds to `counts` how many of all are on
// either side.
std::size_t far_from_zero(std::span<const float> x, float scale, std::uint32_t above, std::uint32_t below,
                          std::uint32_t first, std::uint32_t* places, float* numbers, Sides& counts);

}  // namespace echelon::codecs
