#pragma once
// CRC-32C (Castagnoli), and its masked form in which TFRecord files store it: a CRC over bytes that themselves contain
// CRCs is weak, so the stored one is rotated and shifted first. Uses the processor's instruction on three streams at
// once (about 20 GB/s on one core).

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon {

// Of all that came `before` (its CRC; 0 for nothing) followed by `bytes`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

constexpr std::uint32_t masked_crc(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace echelon
