#pragma once
// A shuffled order of 0 .. n-1 in which any position can be asked for on its own: position -> index is a bijection,
// keyed by (seed, epoch), without a table. A Feistel network permutes the next power of two; results of n or more are
// fed through again until they fall below n ("cycle walking"; fewer than two rounds on average).

#include <array>
#include <cstdint>

namespace echelon::data {

class Permutation {
 public:
  Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t n);
  std::uint64_t operator()(std::uint64_t position) const;  // position < n

 private:
  static constexpr int rounds = 8;
  std::uint64_t once(std::uint64_t x) const;

  std::uint64_t n_;
  int low_bits_, high_bits_;
  std::array<std::uint32_t, 2 * rounds> keys_;
};

}  // namespace echelon::data
