#pragma once
// What a rank of a split model is made of: the stages that it has, and the groups of ranks that have the same ones.

#include <memory>
#include <vector>

#include "parallel/engine.h"
#include "parallel/planned/stage_compute.h"
#include "parallel/planned/stage_plans.h"
#include "plan/layout.h"
#include "world/world.h"

namespace echelon {

// The stages of `hosted`, with memory for as many micro-batches as the schedule keeps alive. `arena` is what all of
// them compute in. World, layout, plans and what the settings name must outlive them.
std::vector<std::unique_ptr<StageCompute>> make_stages(const EngineSettings& settings, World& world,
                                                       const PlanLayout& layout, StagePlans& plans,
                                                       const std::vector<HostedStage>& hosted,
                                                       const StagePlans::CutGraph& largest,
                                                       const std::shared_ptr<std::vector<Buffer>>& arena);

// For each of `hosted`: the ranks that have the same stage, and the same part of it. Collective.
std::vector<std::unique_ptr<Group>> groups_of_stages(Group& everyone, Rank rank, const PlanLayout& layout,
                                                     const std::vector<HostedStage>& hosted);

// By rank: the micro-batches whose losses it computes.
std::vector<ShardRange> shards_with_losses(const PlanLayout& layout, int ranks);

}  // namespace echelon
