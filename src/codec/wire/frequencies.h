#pragma once
// How often each value occurs among bytes, for range_coder.h. Of many bytes only an eighth is counted, in runs spread
// over all of them; a value that occurs only outside that eighth counts as one. Deterministic, the same on every
// instruction set.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

inline constexpr int frequency_bits = 12;
inline constexpr std::uint32_t frequency_sum = 1u << frequency_bits;

// The frequencies sum to frequency_sum; at least 1 for a value that occurs, 0 for others. `bytes` are not empty.
// Thread-safe, allocates nothing.
std::array<std::uint32_t, 256> frequencies(std::span<const std::byte> bytes);

}  // namespace echelon::codecs
