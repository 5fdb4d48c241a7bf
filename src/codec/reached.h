#pragma once
// Which numbers have reached a threshold (> 0) by their magnitude (NaN has), as entries of sparse.h without values: the
// place, counted from `first`, and the sign as the flag. In one pass over the numbers, whatever else is to be done with
// them. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

// `entries` has room for so many more than there are numbers; the number of entries is returned.
inline constexpr std::size_t entries_beyond = 8;

std::size_t reached(std::span<const float> x, float threshold, std::size_t first, std::uint16_t* entries);
// The same, and the threshold is taken off the magnitudes that have reached it.
std::size_t take_reached(std::span<float> x, float threshold, std::size_t first, std::uint16_t* entries);
// The same, after more[i] has been added to x[i].
std::size_t add_and_take_reached(std::span<float> x, const float* more, float threshold, std::size_t first,
                                 std::uint16_t* entries);

}  // namespace echelon::codecs
