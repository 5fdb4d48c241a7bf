#pragma once
// Activation recomputation (Chen et al. 2016) as a pass over a stage's graph: what forward computed is not kept until
// backward, but computed once more when backward needs it. The copies are the same nodes on the same operands, and
// random numbers are counted by (step, shard, layer), so they compute the same bits. What ranks send each other is
// kept.
//
//   none       everything is kept
//   all        only what enters the stage is kept: backward begins with another forward pass of the stage
//   sqrt       the n layers of the stage are cut into about sqrt(n) segments; what goes from one to another is kept,
//   and
//              backward computes one segment at a time once more
//   PATTERN    layers whose first name matches (block*, several with |), each by itself
//
// Pure functions.

#include <string>

#include "plan/cut_stage.h"

namespace echelon {

StageGraph recompute(StageGraph stage, const std::string& what);

// Why there is no such setting; empty if there is.
std::string recompute_refusal(const std::string& what, const std::vector<std::string>& layers);

}  // namespace echelon
