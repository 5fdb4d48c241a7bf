#pragma once
// Unpacking with zlib into memory, never more than a limit: a small file cannot ask for a large allocation. BadInput
// naming the file for whatever is wrong: corrupt, truncated, wrong checksum, bytes behind the end.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/files/source.h"

namespace echelon::data {

// The size of a whole file as the header at its beginning declares it. It is given the first 68 KiB, more than the
// longest header has; BadInput if they are no such header.
using DeclaredSize = std::function<std::uint64_t(const Source& beginning)>;

// A gzip file (one or several members). Unpacking stops as soon as more comes than `limit`, or than the header of what
// is inside declares.
std::vector<std::byte> gunzip(const Source& source, std::uint64_t limit, const DeclaredSize& declared = {});

// The most that a packed file of so many bytes may unpack to when nothing in it declares how much it is: texts and
// tables shrink to a tenth, not to a thousandth.
constexpr std::uint64_t plausible_size(std::uint64_t packed) {
  constexpr std::uint64_t always = 256 << 20, ratio = 64;
  return packed > always ? packed * ratio : std::max(always, packed * ratio);
}

// A raw deflate stream at [offset, offset + packed), which unpacks to exactly `unpacked` bytes. If the header of what
// is inside declares another size, nothing behind the header is unpacked.
std::vector<std::byte> inflate_raw(const Source& source, std::uint64_t offset, std::uint64_t packed,
                                   std::uint64_t unpacked, const DeclaredSize& declared = {});

std::uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace echelon::data
