#pragma once
// Algorithms for powers of two among any number of members: before, those who sit out (topology.h) hand their numbers
// to their neighbour; afterwards they get the result.

#include "collective/move.h"
#include "collective/topology.h"

namespace echelon {

inline constexpr int unfold_step = 60000;  // beyond those of the algorithm in between

inline int plan_fold(const Fold& fold, int index, Range data, int step, Mover& mover) {
  if (index < 2 * fold.extra) {
    if (fold.sits_out(index))
      mover.move({.to = index + 1, .out = data, .step = step});
    else
      mover.move({.from = index - 1, .in = data, .reduce = true, .step = step});
  }
  return step + 1;
}

inline void plan_unfold(const Fold& fold, int index, Range data, Mover& mover) {
  if (index >= 2 * fold.extra) return;
  if (fold.sits_out(index))
    mover.move({.from = index + 1, .in = data, .step = unfold_step});
  else
    mover.move({.to = index - 1, .out = data, .step = unfold_step});
}

}  // namespace echelon
