#pragma once
// Slow workers, for experiments: whose computations take how many times as long. A pure function of rank, step and
// seed, so that every system that is compared meets the same ones.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace echelon {

struct Straggler {
  int rank = 0;       // -1: in every step another one, drawn from the seed
  double factor = 1;  // as long
  double chance = 1;  // with which a step is hit
};

inline double slowness(const std::vector<Straggler>& all, int rank, int workers, std::int64_t step,
                       std::uint64_t seed) {
  double factor = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stream random(
        {seed, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(i), stream_layer("straggler")});
    const int who =
        all[i].rank >= 0 ? all[i].rank : static_cast<int>(random.below(static_cast<std::uint32_t>(workers), 0));
    if (who == rank && (all[i].chance >= 1 || random.uniform(1) < static_cast<float>(all[i].chance)))
      factor = std::max(factor, all[i].factor);
  }
  return factor;
}

}  // namespace echelon
