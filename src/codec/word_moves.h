#pragma once
// Tables for moving some of eight 16-bit words by a byte shuffle.

#include <cstdint>

namespace echelon::codecs {

// For each set of eight words: where, in bytes, its members are, to put them together; and where they are when they are
// together, to put them back. 0x80: nowhere, which a shuffle makes a zero.
struct WordMoves {
  std::uint8_t together[256][16], apart[256][16];

  constexpr WordMoves() : together{}, apart{} {
    for (unsigned set = 0; set < 256; ++set) {
      for (std::uint8_t& byte : together[set]) byte = 0x80;
      for (std::uint8_t& byte : apart[set]) byte = 0x80;
      for (unsigned k = 0, next = 0; k < 8; ++k) {
        if ((set >> k & 1) == 0) continue;
        for (unsigned byte = 0; byte < 2; ++byte) {
          together[set][2 * next + byte] = static_cast<std::uint8_t>(2 * k + byte);
          apart[set][2 * k + byte] = static_cast<std::uint8_t>(2 * next + byte);
        }
        ++next;
      }
    }
  }
};
alignas(64) inline constexpr WordMoves word_moves;

}  // namespace echelon::codecs
