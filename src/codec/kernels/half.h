#pragma once
// 16-bit floats: IEEE binary16 and bfloat16, rounded to the nearest, ties to even, as the hardware does; too large a
// number becomes infinite. `bytes` need no alignment. add: out[i] += scale * number i. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

void to_fp16(std::span<const float> x, std::byte* bytes);
void add_fp16(const std::byte* bytes, float scale, std::span<float> out);
void from_fp16(const std::byte* bytes, std::span<float> out);

void to_bf16(std::span<const float> x, std::byte* bytes);
void add_bf16(const std::byte* bytes, float scale, std::span<float> out);
void from_bf16(const std::byte* bytes, std::span<float> out);

// One number, and what the vectors are tested against.
std::uint16_t ref_to_fp16(float x);
float ref_from_fp16(std::uint16_t half);
std::uint16_t ref_to_bf16(float x);
float ref_from_bf16(std::uint16_t half);

}  // namespace echelon::codecs
