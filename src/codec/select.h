#pragma once
// Which numbers are the largest, without sorting: a number's magnitude, read as an integer, orders as the number does,
// so counting by its first ten bits, then by the next eleven among those that matter, then by the last ten, finds the
// k-th largest exactly. One pass that counts and two that mostly skip; nothing is drawn and no memory is needed but
// counters.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::codecs {

// What counts as large: the magnitude, or the number itself where it is above (below) zero.
enum class Side : std::uint8_t { both, positive, negative };

namespace detail {
constexpr std::uint32_t flipped(Side side) { return side == Side::negative ? 0x80000000u : 0; }
inline constexpr int coarse = 21, fine = 10;  // bits below the first ten, and below the next eleven
}  // namespace detail

// A number as select.h orders it: 0 for those on the other side. NaN is larger than everything.
std::uint32_t order_bits(float x, Side side);

// The k largest are those whose bits are above `bits`, and the first `ties` of those with exactly these bits. Zeros are
// never among them, so they may be fewer than k.
struct Largest {
  std::uint32_t bits = 0;
  std::size_t ties = 0;
};

class Selector {
 public:
  Largest largest(std::span<const float> x, std::size_t k, Side side = Side::both);

 private:
  std::array<std::uint32_t, 4 * 1024> counts_;  // four tables side by side: equal neighbours do not wait for each other
  std::array<std::uint32_t, 2048> finer_;
};

// Writes the positions, in order, of the numbers whose bits are at least `bits` (> 0), and returns how many they are.
// At most most_positions numbers at once; `out` has room for all of them.
inline constexpr std::size_t most_positions = 4096;
std::size_t positions_at_least(std::span<const float> x, Side side, std::uint32_t bits, std::uint16_t* out);

}  // namespace echelon::codecs
