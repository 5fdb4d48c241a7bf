#pragma once
// The buckets in which exact training sums its gradients over ranks, the same on all of them.

#include <vector>

#include "parallel/step/rank_sum.h"
#include "parallel/step/shard_compute.h"
#include "parallel/team/team.h"

namespace echelon {

// One bucket with everything that the phase trains.
std::vector<Bucket> one_bucket(const ComputePhase& phase);

// Rank 0 chooses from when it expects each gradient (by the last step's time) and what a sum costs (as measured); the
// others do as it says. Collective. Failure if what came from rank 0 is no list of buckets.
std::vector<Bucket> agree_on_buckets(Team& team, ShardCompute& compute, ComputePhase& phase, const data::Batch& batch,
                                     const RankSum& sum);

}  // namespace echelon
