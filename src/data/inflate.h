#pragma once
// Unpacking with zlib into memory, never more than a limit: a small file cannot ask for a large allocation. BadInput
// naming the file for whatever is wrong: corrupt, truncated, wrong checksum, bytes behind the end.

#include <cstdint>
#include <vector>

#include "data/source.h"

namespace echelon::data {

// A gzip file (one or several members).
std::vector<std::byte> gunzip(const Source& source, std::uint64_t limit);

// A raw deflate stream at [offset, offset + packed), which unpacks to exactly `unpacked` bytes.
std::vector<std::byte> inflate_raw(const Source& source, std::uint64_t offset, std::uint64_t packed,
                                   std::uint64_t unpacked);

std::uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace echelon::data
