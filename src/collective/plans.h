#pragma once
// The moves of one member (`index` of `n`) in the building blocks that several collectives share. Pure arithmetic.
// `step` is where a block's step numbers begin; each returns where the next block's may.

#include <span>

#include "collective/move.h"
#include "collective/topology.h"

namespace echelon {

// Reduce-scatter in a ring: afterwards member i has the result of parts[i]. n - 1 steps.
int plan_ring_reduce_scatter(int n, int index, std::span<const Range> parts, int step, Mover& mover);
// All-gather in a ring of what member i has in parts[i]. n - 1 steps.
int plan_ring_all_gather(int n, int index, std::span<const Range> parts, int step, Mover& mover);

// Binomial trees, seen from `root`: `data` flows to the root being combined, or from the root. ceil(log2 n) steps.
int plan_binomial_reduce(int n, int index, int root, Range data, int step, Mover& mover);
int plan_binomial_broadcast(int n, int index, int root, Range data, int step, Mover& mover);

// Every member with the root.
int plan_flat_gather(int n, int index, int root, std::span<const Range> parts, int step, Mover& mover);
int plan_flat_scatter(int n, int index, int root, std::span<const Range> parts, int step, Mover& mover);

}  // namespace echelon
