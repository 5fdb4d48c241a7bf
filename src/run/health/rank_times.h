#pragma once
// Where the time of all ranks went, brought together.

#include <vector>

#include "parallel/team/team.h"
#include "run/summary.h"

namespace echelon {

// By rank, on rank 0; empty elsewhere. Collective.
std::vector<RankSummary> gather_rank_times(Team& team, const RankTimes& mine, double waited_for_input);

}  // namespace echelon
