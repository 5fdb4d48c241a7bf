#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace echelon::data {

namespace {
// Spreads every input bit over all output bits (a multiply-xorshift finaliser with two keys).
std::uint32_t mix(std::uint32_t x, std::uint32_t k0, std::uint32_t k1) {
  x = (x ^ k0) * 0x9E3779B1u;
  x = (x ^ (x >> 15) ^ k1) * 0x85EBCA77u;
  x = (x ^ (x >> 13)) * 0xC2B2AE3Du;
  return x ^ (x >> 16);
}
}  // namespace

Permutation::Permutation(std::uint64_t seed, std::uint32_t epoch, std::uint64_t n) : n_(n) {
  const int bits = std::max(4, static_cast<int>(std::bit_width(n > 0 ? n - 1 : 0)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  const Stream stream({.seed = seed, .step = epoch, .layer = stream_layer("data.shuffle")});
  for (std::uint32_t b = 0; b < keys_.size() / 4; ++b) std::ranges::copy(stream.block(b), keys_.begin() + 4 * b);
}

std::uint64_t Permutation::once(std::uint64_t x) const {
  // Each half in turn is changed by a keyed function of the other: undone by the same steps backwards, so a bijection.
  std::uint32_t low = static_cast<std::uint32_t>(x & ((1ull << low_bits_) - 1));
  std::uint32_t high = static_cast<std::uint32_t>(x >> low_bits_);
  for (std::size_t r = 0; r < 2 * rounds; r += 4) {
    low ^= mix(high, keys_[r], keys_[r + 1]) & static_cast<std::uint32_t>((1ull << low_bits_) - 1);
    high ^= mix(low, keys_[r + 2], keys_[r + 3]) & static_cast<std::uint32_t>((1ull << high_bits_) - 1);
  }
  return static_cast<std::uint64_t>(high) << low_bits_ | low;
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  std::uint64_t x = position;
  do x = once(x);
  while (x >= n_);
  return x;
}

}  // namespace echelon::data
