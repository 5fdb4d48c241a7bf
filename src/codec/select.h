#pragma once
// Which numbers are the largest, without sorting. A number's magnitude, read as an integer, orders as the number does,
// so counting by its first ten bits, then by the next eleven among those that matter, then by the last ten, finds the
// k-th largest exactly. To count less, a small part of a long run is looked at first: it tells a limit that a few more
// than k numbers will exceed; those are collected in one pass, and the k-th largest is found among them alone. If the
// part has misled, all are counted. The result is exact either way, and the same every time.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace echelon::codecs {

// What counts as large: the magnitude, or the number itself where it is above (below) zero.
enum class Side : std::uint8_t { both, positive, negative };

namespace detail {
constexpr std::uint32_t flipped(Side side) { return side == Side::negative ? 0x80000000u : 0; }
inline constexpr int coarse = 21, fine = 10;  // bits below the first ten, and below the next eleven
}  // namespace detail

// A number as select.h orders it: 0 for those on the other side. NaN is larger than everything.
inline std::uint32_t order_bits(float x, Side side) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (side == Side::both) return bits & 0x7FFFFFFFu;
  const std::uint32_t turned = bits ^ detail::flipped(side);
  return turned >> 31 ? 0 : turned;
}

// The k largest are those whose bits are above `bits`, and the first `ties` of those with exactly these bits. Zeros are
// never among them, so they may be fewer than k.
struct Largest {
  std::uint32_t bits = 0;
  std::size_t ties = 0;
};

class Selector {
 public:
  // Has room for choosing up to `most` of up to so many numbers; takes more when it must.
  Selector(std::size_t numbers, std::size_t most);
  // By counting all.
  Largest largest(std::span<const float> x, std::size_t k, Side side = Side::both);
  // The places of the k largest, rising. They stay until the next call.
  std::span<const std::uint32_t> places(std::span<const float> x, std::size_t k, Side side = Side::both);

 private:
  void reserve(std::size_t numbers, std::size_t most);
  void make_room(std::size_t places);
  std::span<const float> sample_of(std::span<const float> x);  // empty if x is too short
  // That a few more than `expected` of the sample exceed.
  void set_limit(std::span<const float> sample, double expected, Side side);
  void collect(std::span<const float> x);  // all that have reached the limit
  std::span<const std::uint32_t> keep_largest(std::span<const float> x, std::size_t k);
  std::vector<std::uint32_t> places_;
  std::vector<float> numbers_;  // at these places: they are near while they are looked at, and far away later
  std::vector<float> sample_;
  Side side_ = Side::both;
  std::uint32_t limit_ = 0;                     // bits; 0 if the sample told nothing or has misled
  std::size_t found_ = 0;                       // places of numbers that have reached it
  std::array<std::uint32_t, 4 * 1024> counts_;  // four tables side by side: equal neighbours do not wait for each other
  std::array<std::uint32_t, 2048> finer_;
};

// Writes the places, each plus `first`, in order, of the numbers whose bits are at least `bits` (> 0), and returns how
// many they are. `out` has room for x.size().
std::size_t places_at_least(std::span<const float> x, Side side, std::uint32_t bits, std::uint32_t first,
                            std::uint32_t* out);

}  // namespace echelon::codecs
