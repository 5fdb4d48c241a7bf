#pragma once
// Whether ranks that hold the same weights hold the same bits.

#include <cstdint>
#include <span>

#include "parallel/engine.h"
#include "parallel/team/team.h"

namespace echelon {

// `held` by this rank. Failure naming the ranks that differ from the others, if some do. Collective.
void expect_same_weights(Team& team, std::span<const HeldWeights> held, std::int64_t step);

}  // namespace echelon
