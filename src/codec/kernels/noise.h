#pragma once
// The random numbers of stochastic rounding: one for every position of a run, from a key that a Stream gives per call.
// Philox would cost more than the rounding itself; here two multiplications mix the position and the key (the mixer of
// Wellons' "lowbias32", keyed before and between its rounds). The same on every instruction set: it depends on the
// position alone, not on the width of vectors. Good enough for rounding, not for anything that must be secret.

#include <cstdint>

#include "base/random.h"

namespace echelon::codecs {

struct Noise {
  explicit constexpr Noise(const Stream& random) : Noise(random.block(0)) {}
  explicit constexpr Noise(std::array<std::uint32_t, 4> words) : before(words[0]), between(words[1]) {}

  constexpr std::uint32_t bits(std::uint64_t position) const {
    auto x = static_cast<std::uint32_t>(position) + before;
    x = (x ^ (x >> 16)) * 0x21F0AAADu;
    x = (x ^ between ^ (x >> 15)) * 0xD35A2D97u;
    return x ^ (x >> 15);
  }
  // Uniform in [0, 1), 24 bits.
  constexpr float uniform(std::uint64_t position) const { return static_cast<float>(bits(position) >> 8) * 0x1p-24f; }

  std::uint32_t before, between;
};

}  // namespace echelon::codecs
