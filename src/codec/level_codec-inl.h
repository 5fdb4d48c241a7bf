#pragma once
// The templates of level_codec.h.

#include <algorithm>

#include "base/error.h"
#include "codec/kernels/levels.h"
#include "codec/wire/bits.h"

namespace echelon::codecs {

template <class Write>
void write_levels(std::size_t n, const LevelFormat& format, std::byte* out, const Write& write) {
  std::uint8_t levels[symbol_block];
  for (std::size_t i = 0; i < n; i += symbol_block) {
    const std::size_t some = std::min(n - i, symbol_block);
    write(i, some, levels);
    const std::size_t count = level_count(some);
    if (format.bits == 0)
      pack_trits(levels, count, out);
    else
      pack_bits(levels, count, format.bits, out);
    out += packed_levels(some, format);
  }
}

template <class Write, class Read>
void write_and_read_levels(std::size_t n, const LevelFormat& format, std::byte* out, const Write& write,
                           const Read& read) {
  write_levels(n, format, out, [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
    write(i, some, levels);
    read(i, some, levels);
  });
}

template <class Read>
void read_levels(const std::byte* bytes, std::size_t n, const LevelFormat& format, const Read& read) {
  std::uint8_t levels[symbol_block];
  for (std::size_t i = 0; i < n; i += symbol_block) {
    const std::size_t some = std::min(n - i, symbol_block);
    const std::size_t count = level_count(some);
    if (format.bits == 0)
      unpack_trits(bytes, count, levels);
    else
      unpack_bits(bytes, count, format.bits, levels);
    std::uint8_t most = 0;
    for (std::size_t k = 0; k < count; ++k) most = std::max(most, levels[k]);
    if (most > format.top) fail("an encoded level is {}, the highest is {}", most, format.top);
    read(i, some, levels);
    bytes += packed_levels(some, format);
  }
}

}  // namespace echelon::codecs
