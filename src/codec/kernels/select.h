#pragma once
// Selects the k largest numbers without sorting. The bits of a magnitude, read as an integer, have the same order as
// the magnitude, so a radix selection finds the k-th largest exactly: counting by the first ten bits, then by the next
// eleven among the candidates, then by the last ten. To count less, a small sample of a long run gives a limit that a
// few more than k numbers should exceed; these are collected in one pass, and the k-th largest is found among them. If
// the sample was not representative, all numbers are counted. The result is exact either way, and deterministic.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace echelon::codecs {

// What is compared: the magnitude of all numbers, or only of the positive (negative) ones.
enum class Side : std::uint8_t { both, positive, negative };

namespace detail {
constexpr std::uint32_t flipped(Side side) { return side == Side::negative ? 0x80000000u : 0; }
inline constexpr int coarse = 21, fine = 10;  // bits below the first ten, and below the next eleven
}  // namespace detail

// The integer by which a number is ordered: 0 for numbers on the other side. NaN is larger than everything.
inline std::uint32_t order_bits(float x, Side side) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (side == Side::both) return bits & 0x7FFFFFFFu;
  const std::uint32_t turned = bits ^ detail::flipped(side);
  return turned >> 31 ? 0 : turned;
}

// The k largest are those whose order bits are above `bits`, and the first `ties` of those with exactly these bits.
// Zeros are never among them, so they may be fewer than k.
struct Largest {
  std::uint32_t bits = 0;
  std::size_t ties = 0;
};

class Selector {
 public:
  // Has room for choosing up to `most` of up to `numbers` numbers; grows if necessary.
  Selector(std::size_t numbers, std::size_t most);
  // Counts all numbers.
  Largest largest(std::span<const float> x, std::size_t k, Side side = Side::both);
  // The places of the k largest, rising. They stay until the next call.
  std::span<const std::uint32_t> places(std::span<const float> x, std::size_t k, Side side = Side::both);

 private:
  void reserve(std::size_t numbers, std::size_t most);
  void make_room(std::size_t places);
  std::span<const float> sample_of(std::span<const float> x);  // empty if x is too short
  // Sets the limit so that a few more than `expected` numbers of the sample exceed it.
  void set_limit(std::span<const float> sample, double expected, Side side);
  void collect(std::span<const float> x);  // all that have reached the limit
  std::span<const std::uint32_t> keep_largest(std::span<const float> x, std::size_t k);
  std::vector<std::uint32_t> places_;
  std::vector<float> numbers_;  // at these places: copied while they are in the cache
  std::vector<float> sample_;
  Side side_ = Side::both;
  std::uint32_t limit_ = 0;                     // order bits; 0 if the sample gave none or was not representative
  std::size_t found_ = 0;                       // places of numbers that have reached it
  std::array<std::uint32_t, 4 * 1024> counts_;  // four tables: equal neighbours do not wait for each other
  std::array<std::uint32_t, 2048> finer_;
};

// Writes the places, each plus `first`, in order, of the numbers whose bits are at least `bits` (> 0), and returns how
// many they are. `out` has room for x.size().
std::size_t places_at_least(std::span<const float> x, Side side, std::uint32_t bits, std::uint32_t first,
                            std::uint32_t* out);

}  // namespace echelon::codecs
