#pragma once
// Collects candidates for the largest numbers above zero and the largest below it, in one pass; the exact selection
// (select.h) then has few numbers to look at. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

struct Sides {
  std::size_t above = 0, below = 0;  // of zero
};

// Writes i + first and x[i] * scale for every x[i] * scale whose order_bits on its side are at least `above` or `below`
// (both > 0). `places` and `numbers` have room for as many as x. Returns the count of candidates, and adds the count of
// all numbers on either side to `counts`.
std::size_t far_from_zero(std::span<const float> x, float scale, std::uint32_t above, std::uint32_t below,
                          std::uint32_t first, std::uint32_t* places, float* numbers, Sides& counts);

}  // namespace echelon::codecs
