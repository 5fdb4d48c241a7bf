#pragma once
// Byte-shuffle tables that compact some of eight 16-bit words, or expand them again.

#include <cstdint>

namespace echelon::codecs {

// For each subset of eight words: the shuffle that moves its words together, and the one that moves them back apart.
// 0x80 selects no byte: the shuffle writes a zero.
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
