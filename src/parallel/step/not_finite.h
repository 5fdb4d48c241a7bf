#pragma once
// A loss that is not a number: the recipe asks for what cannot be trained.

#include "base/error.h"
#include "parallel/step/shard_compute.h"

namespace echelon {

// The weights are those from before the step.
class NotFinite : public BadInput {
  using BadInput::BadInput;
};

// The first shard of the phase whose loss is not finite.
int shard_not_finite(const ComputePhase& phase);

// Throws NotFinite with the place where numbers stopped being numbers: a parameter, or the first operation of the
// shard's computation, which is run once more for that. On the rank that has the shard, after all cores are done.
[[noreturn]] void explain_not_finite(ShardCompute& compute, ComputePhase& phase, const data::Batch& batch,
                                     StepContext context, int shard);

// On the other ranks: waits until that rank has said what went wrong, and ends with it.
[[noreturn]] void wait_for_explanation(World& world, Rank rank);

}  // namespace echelon
