#include "base/crc32c.h"

#include <nmmintrin.h>  // part of the baseline, x86-64-v2

#include <cstring>

namespace echelon {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint64_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) crc32 = _mm_crc32_u8(crc32, static_cast<unsigned char>(*at));
  return ~crc32;
}

}  // namespace echelon
