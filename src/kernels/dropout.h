#pragma once
// Dropout and noise from a counter-based stream (base/random.h): element i uses word i of the stream, so the result
// does not depend on who computes which range, and the gradient recomputes the mask instead of storing it.
// Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"

namespace echelon::kernels {

// y[i] = stream.bits(i) >= p * 2^32 ? x[i] / (1 - p) : 0, for 0 <= p < 1. y may be x. The gradient is the same call
// on dy. `first`, a multiple of 4: x and y are elements first, first + 1, ... of something longer.
void dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n, std::uint64_t first = 0);

// out[i] = stream.uniform(offset + i) and stream.normal(offset + i).
void fill_uniform(const Stream& stream, std::uint64_t offset, std::span<float> out);
void fill_normal(const Stream& stream, std::uint64_t offset, std::span<float> out);

void ref_dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n);
void ref_fill_uniform(const Stream& stream, std::uint64_t offset, std::span<float> out);
void ref_fill_normal(const Stream& stream, std::uint64_t offset, std::span<float> out);

}  // namespace echelon::kernels
