#pragma once
// The pass that shares the state of a stage among the ranks that have it (ZeRO, Rajbhandari et al. 2020), on the
// stage's graph:
//   zero 2, 3   a micro-batch's gradient of a parameter goes to the ranks that sum it up as soon as it is computed
//               (`contribute`), so the memory for gradients is that of the few that are alive at once
//   zero 3      a parameter is gathered before its first use in a pass, and its memory is free after the last one;
//               gathering begins `prefetch` parameters ahead
// What is computed stays the same, node for node. Pure functions.

#include "plan/cut_stage.h"

namespace echelon {

StageGraph shard_state(StageGraph stage, int zero, int prefetch);

}  // namespace echelon
