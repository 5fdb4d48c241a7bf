#pragma once
// What ranks allocate that train the whole model (parallel/step/trainer.h). Nothing is allocated or run.

#include <vector>

#include "parallel/planned/plan_view.h"
#include "recipe/prepare.h"

namespace echelon {

// By rank. `cores`: of each. `by_messages`: ranks sum gradients by sending them, and each has a place for the sum.
std::vector<RankBytes> whole_model_bytes(const PreparedRun& prepared, int ranks, int cores, bool by_messages);

}  // namespace echelon
