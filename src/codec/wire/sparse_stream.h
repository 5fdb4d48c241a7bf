#pragma once
// Sparse numbers as streams of indices and float32 values (sparse.h), which a sparse all-reduce merges without making
// them dense. Streams come from the network: Failure if one is invalid. Thread-safe, allocates nothing.

#include <cstddef>
#include <span>

namespace echelon::codecs {

// The bytes of a stream with so many entries.
std::size_t stream_bytes(std::size_t numbers, std::size_t entries);

// The numbers of x that are not zero. Returns the bytes written, or 0 if `out` has no room for all.
std::size_t write_stream(std::span<const float> x, std::span<std::byte> out);

// The sum of two streams of `numbers` numbers. Returns the bytes written; `out` has room for those of both.
std::size_t merge_streams(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t numbers,
                          std::span<std::byte> out);

void add_stream(std::span<const std::byte> stream, std::span<float> out);  // out[i] += number i

}  // namespace echelon::codecs
