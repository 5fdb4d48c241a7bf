#include "base/random.h"

#include <cmath>

namespace echelon {

float Stream::normal(std::uint64_t index) const {
  const auto words = block(static_cast<std::uint32_t>(index >> 2));
  const std::size_t pair = (index & 2);
  const double u1 = (words[pair] + 1.0) * 0x1p-32, u2 = words[pair + 1] * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(u1)), angle = 2.0 * 3.14159265358979323846 * u2;
  return static_cast<float>(radius * ((index & 1) ? std::sin(angle) : std::cos(angle)));
}

}  // namespace echelon
