#pragma once
// How long collectives take on a platform, with everything that passes a shared link added up: what goes through a NIC
// or an uplink at the same time goes through it one after the other. Pure functions.

#include <span>

#include "foresight/costs/platform.h"

namespace echelon::foresight {

// What one half of the sum over members by owners costs (collective/all_reduce/owners.cpp): every member sends every
// other one a part of the sum. `bytes` is the size of the whole sum; the half takes latency + bytes * per_byte.
struct HalfSumCost {
  double latency = 0, per_byte = 0;
  double message = 0;  // the latency of one message between the two farthest
  double seconds(double bytes) const { return latency + bytes * per_byte; }
};
HalfSumCost owners_half(const Platform& platform, std::span<const int> ranks);

// Around a ring in the order of ranks: reduce-scatter and all-gather.
double ring_seconds(const Platform& platform, std::span<const int> ranks, double bytes);

// A small record of every rank to all (losses, norms): as collective/operations/all_gather.cpp does it.
double small_all_gather_seconds(const Platform& platform, double bytes_each);

}  // namespace echelon::foresight
