#pragma once
// Whether all ranks hold the same weights.

#include <cstdint>
#include <span>

#include "parallel/team/team.h"

namespace echelon {

// Failure naming the ranks that differ from the others, if some do. Collective.
void expect_same_weights(Team& team, std::span<const float> weights, std::int64_t step);

}  // namespace echelon
