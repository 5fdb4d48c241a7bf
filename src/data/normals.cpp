#include "data/normals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace echelon::data {

namespace {

constexpr std::size_t blocks = 32;  // of four numbers each, made together so that the loops below become vector code

// ln(u) for u in (0, 1]: exponent and mantissa apart, then a polynomial (fitted over [1/sqrt 2, sqrt 2)).
inline float logarithm(float u) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(u) - 0x3F3504F3u;  // 1/sqrt 2
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
  const float x = std::bit_cast<float>((bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float p = -0.08101559f;
  p = p * x + 0.12712307f;
  p = p * x - 0.12972239f;
  p = p * x + 0.14202175f;
  p = p * x - 0.16642247f;
  p = p * x + 0.20001468f;
  p = p * x - 0.25000298f;
  p = p * x + 0.33333328f;
  return exponent * 0.6931472f + (x - 0.5f * x * x + x * x * x * p);
}

inline std::uint32_t bits_of(float f) { return std::bit_cast<std::uint32_t>(f); }

// One pair of random words becomes two normal numbers (Box and Muller). No branches, or it would not be vector code.
inline void pair(std::uint32_t a, std::uint32_t b, float& first, float& second) {
  // Signed conversions, because only those exist as vector instructions: the top 31 bits are more than a float keeps.
  const float u = static_cast<float>(static_cast<std::int32_t>(a >> 1)) * 0x1p-31f + 0x1p-32f;
  const float radius = std::sqrt(std::abs(2.0f * logarithm(u)));
  // The angle in turns, moved to the nearest quarter: f in [-1/8, 1/8].
  const std::uint32_t shifted = b + 0x20000000u, quarter = shifted >> 30;
  const float f = static_cast<float>(static_cast<std::int32_t>(shifted & 0x3FFFFFFFu) - 0x20000000) * 0x1p-32f;
  const float z = f * f;
  const std::uint32_t s = bits_of(f * (((-75.40184f * z + 81.592545f) * z - 41.341663f) * z + 6.2831855f));
  const std::uint32_t c = bits_of((((59.220287f * z - 85.44285f) * z + 64.939316f) * z - 19.739208f) * z + 1.0f);
  // In odd quarters sine and cosine change places; in some they change their sign.
  const std::uint32_t odd = 0u - (quarter & 1);
  const std::uint32_t cosine = ((s & odd) | (c & ~odd)) ^ (((quarter + 1) & 2) << 30);
  const std::uint32_t sine = ((c & odd) | (s & ~odd)) ^ ((quarter & 2) << 30);
  first = radius * std::bit_cast<float>(cosine);
  second = radius * std::bit_cast<float>(sine);
}

}  // namespace

void fill_normals(const Stream& stream, std::span<float> out) {
  std::array<std::uint32_t, 2 * blocks> a, b;
  std::array<float, 4 * blocks> numbers;
  for (std::size_t done = 0; done < out.size(); done += numbers.size()) {
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto words = stream.block(static_cast<std::uint32_t>(done / 4 + i));
      a[2 * i] = words[0], b[2 * i] = words[1], a[2 * i + 1] = words[2], b[2 * i + 1] = words[3];
    }
    for (std::size_t i = 0; i < 2 * blocks; ++i) pair(a[i], b[i], numbers[2 * i], numbers[2 * i + 1]);
    std::copy_n(numbers.begin(), std::min(out.size() - done, numbers.size()),
                out.begin() + static_cast<std::ptrdiff_t>(done));
  }
}

}  // namespace echelon::data
