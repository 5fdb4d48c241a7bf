#pragma once
// Algorithms for a power of two among any number of members: before them, the members that sit out (Fold in
// topology.h) send their data to their neighbour; afterwards they get the result from it.

#include "collective/topology.h"
#include "collective/transfers/transfer.h"

namespace echelon {

inline constexpr int unfold_step = 60000;  // beyond the steps of the algorithm in between

inline int plan_fold(const Fold& fold, int index, Range data, int step, TransferRunner& runner) {
  if (index < 2 * fold.extra) {
    if (fold.sits_out(index))
      runner.run({.to = index + 1, .out = data, .step = step});
    else
      runner.run({.from = index - 1, .in = data, .reduce = true, .step = step});
  }
  return step + 1;
}

inline void plan_unfold(const Fold& fold, int index, Range data, TransferRunner& runner) {
  if (index >= 2 * fold.extra) return;
  if (fold.sits_out(index))
    runner.run({.from = index + 1, .in = data, .step = unfold_step});
  else
    runner.run({.to = index - 1, .out = data, .step = unfold_step});
}

}  // namespace echelon
