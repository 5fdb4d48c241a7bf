#pragma once
// Rounds numbers to integer levels and back, in vectors. A grid maps x to x * multiply + add; the level is one of the
// two integers next to that, drawn so that the expectation is exact (stochastic rounding; 16 bits of noise) and clamped
// to 0 .. top. The same bits on every instruction set. Thread-safe, allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/kernels/noise.h"

namespace echelon::codecs {

// The statistics from which codecs compute scales, in one pass.
struct Moments {
  double sum = 0, squares = 0;
  float largest = 0;  // magnitude; NaN if one is
};
Moments moments(std::span<const float> x);

struct Grid {
  float multiply = 0, add = 0;
  std::uint8_t top = 0;
};

// Levels take one byte each, in an order of their own: of each 32 numbers, 0, 8, 16, 24 come first, then 1, 9, 17, 25,
// and so on, so that vectors of numbers become vectors of bytes by shifts alone. An incomplete last group is padded:
// n numbers have level_count(n) levels.
inline constexpr std::size_t level_group = 32;
constexpr std::size_t level_count(std::size_t n) { return (n + level_group - 1) / level_group * level_group; }
std::size_t level_place(std::size_t i);  // where the level of number i lies

// Number i has the noise of position first + i.
void round_to_levels(std::span<const float> x, const Grid& grid, const Noise& noise, std::size_t first,
                     std::uint8_t* levels);
// 0, 1 or 2: at or below -threshold, between, at or above the threshold.
void classify(std::span<const float> x, float threshold, std::uint8_t* levels);

// out[i] += (or =) base + step * level i.
void add_levels(const std::uint8_t* levels, float base, float step, std::span<float> out);
void spread_levels(const std::uint8_t* levels, float base, float step, std::span<float> out);

// 16-bit fixed point: x * multiply, which should be a power of two, rounded to the nearest or stochastically,
// saturating.
void round_to_int16(std::span<const float> x, float multiply, std::byte* out);
void round_to_int16(std::span<const float> x, float multiply, const Noise& noise, std::size_t first, std::byte* out);
void add_int16(const std::byte* bytes, float step, std::span<float> out);
void spread_int16(const std::byte* bytes, float step, std::span<float> out);

// The readable twins, for tests.
std::uint8_t ref_level(float x, const Grid& grid, const Noise& noise, std::size_t first, std::size_t i);
std::int16_t ref_int16(float x, float multiply, const Noise& noise, std::size_t first, std::size_t i);

}  // namespace echelon::codecs
