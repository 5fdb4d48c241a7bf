#include "base/random.h"

#include <cmath>

#include "base/normal_block.h"

namespace echelon {

namespace {

// Box-Muller on a pair of words.
struct Polar {
  explicit Polar(std::uint32_t first, std::uint32_t second)
      : radius(std::sqrt(-2.0 * std::log((first + 1.0) * 0x1p-32))),
        angle(2.0 * 3.14159265358979323846 * (second * 0x1p-32)) {}
  float x() const { return static_cast<float>(radius * std::cos(angle)); }
  float y() const { return static_cast<float>(radius * std::sin(angle)); }
  double radius, angle;
};

}  // namespace

float Stream::normal(std::uint64_t index) const {
  const auto words = block(static_cast<std::uint32_t>(index >> 2));
  const std::size_t pair = (index & 2);
  const Polar polar(words[pair], words[pair + 1]);
  return (index & 1) ? polar.y() : polar.x();
}

std::array<float, 4> normal_block(const Stream& stream, std::uint32_t index) {
  const auto words = stream.block(index);
  const Polar first(words[0], words[1]), second(words[2], words[3]);
  return {first.x(), first.y(), second.x(), second.y()};
}

}  // namespace echelon
