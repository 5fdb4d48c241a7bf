#pragma once
// How often each value occurs among bytes, for range_coder.h. Of many bytes only an eighth is counted, runs spread over
// all of them, and any value that is not among that eighth once. The same every time, on every instruction set.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

inline constexpr int frequency_bits = 12;
inline constexpr std::uint32_t frequency_sum = 1u << frequency_bits;

// They sum to frequency_sum, at least 1 for what occurs and 0 for what does not. `bytes` are not empty. Thread-safe,
// allocates nothing.
std::array<std::uint32_t, 256> frequencies(std::span<const std::byte> bytes);

}  // namespace echelon::codecs
