#pragma once
// The transfers of one member (`index` of `n`) in the building blocks that several collectives share. Pure arithmetic.
// A block's step numbers begin at `step`; the function returns the first step number after them.

#include <span>

#include "collective/topology.h"
#include "collective/transfers/transfer.h"

namespace echelon {

// Reduce-scatter in a ring: afterwards member i has the result of parts[i]. n - 1 steps.
int plan_ring_reduce_scatter(int n, int index, std::span<const Range> parts, int step, TransferRunner& runner);
// All-gather in a ring: member i begins with parts[i] and ends with all of them. n - 1 steps.
int plan_ring_all_gather(int n, int index, std::span<const Range> parts, int step, TransferRunner& runner);

// Binomial trees: `data` is combined on its way to the root, or copied from it. ceil(log2 n) rounds.
int plan_binomial_reduce(int n, int index, int root, Range data, int step, TransferRunner& runner);
int plan_binomial_broadcast(int n, int index, int root, Range data, int step, TransferRunner& runner);

// Every member exchanges its part with the root.
int plan_flat_gather(int n, int index, int root, std::span<const Range> parts, int step, TransferRunner& runner);
int plan_flat_scatter(int n, int index, int root, std::span<const Range> parts, int step, TransferRunner& runner);

}  // namespace echelon
