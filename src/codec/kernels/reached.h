#pragma once
// Finds the numbers whose magnitude has reached a threshold (> 0; NaN has), as entries of sparse.h without values: the
// index, counted from `first`, and the sign as the flag. In one pass over the numbers, together with error feedback.
// Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

// `entries` has room for the numbers and so many more; the number of entries is returned.
inline constexpr std::size_t entries_beyond = 8;

std::size_t reached(std::span<const float> x, float threshold, std::size_t first, std::uint16_t* entries);
// The same, and subtracts the threshold from the magnitudes that have reached it.
std::size_t take_reached(std::span<float> x, float threshold, std::size_t first, std::uint16_t* entries);
// The same, after more[i] has been added to x[i].
std::size_t add_and_take_reached(std::span<float> x, const float* more, float threshold, std::size_t first,
                                 std::uint16_t* entries);

}  // namespace echelon::codecs
