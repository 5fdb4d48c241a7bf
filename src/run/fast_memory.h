#pragma once
// A system whose workers compute in a bounded memory (exchange.memory, as in GeePS): which plan each of them then
// follows.

#include "base/options.h"
#include "plan/spec.h"
#include "recipe/prepare.h"

namespace echelon {

// None if the system has no bound, or all that a worker needs is within it. Else parameters and sums of gradients lie
// in a file; of the plans within the bound the one that computes least a second time, and then the one that fetches
// parameters longest ahead of their use. A problem if there is none.
PlanSpec plan_in_fast_memory(const PreparedRun& prepared, int workers, Problems& problems);

}  // namespace echelon
