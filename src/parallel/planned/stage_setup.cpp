#include "parallel/planned/stage_setup.h"

#include <algorithm>

#include "base/error.h"
#include "plan/check.h"

namespace echelon {

std::vector<std::unique_ptr<StageCompute>> make_stages(const EngineSettings& settings, World& world,
                                                       const PlanLayout& layout, StagePlans& plans,
                                                       const std::vector<HostedStage>& hosted,
                                                       const StagePlans::CutGraph& largest,
                                                       const std::shared_ptr<std::vector<Buffer>>& arena) {
  std::size_t bytes = 0;
  for (const HostedStage& h : hosted) bytes = std::max(bytes, largest.of(h.stage, h.part).plan.memory.arena_bytes);
  arena->emplace_back(bytes);
  const int replica = layout.replica_of(world.rank()), position = layout.position_of(world.rank());
  const ScheduleCheck check =
      check_schedule(layout.checked_schedule(replica), layout.checked_messages(largest.placed.messages));
  invariant(check.problems.empty(), "the schedule of a legal plan can be run");
  const PlanSpec& plan = layout.plan();
  std::vector<std::unique_ptr<StageCompute>> stages;
  for (const HostedStage& h : hosted)
    stages.push_back(std::make_unique<StageCompute>(
        world, plans,
        StageCompute::Settings{.hosted = h,
                               .shards = settings.shards,
                               .live = layout.places(check.live[static_cast<std::size_t>(
                                   position)][static_cast<std::size_t>(layout.checked_stage(h.stage, h.part))]),
                               .splits_weights = layout.splits_weights(),
                               .saved_versions = plan.staleness(h.stage),
                               .zero = plan.zero,
                               .offload = plan.offload,
                               .offloads_parameters = plan.offloads_parameters(),
                               .sums_outside = plan.sums_outside(),
                               .seed = settings.seed,
                               .fields = settings.fields,
                               .order = layout.order_of(world.rank(), h.stage)},
        arena));
  return stages;
}

// All ranks go through the stages in the same order.
std::vector<std::unique_ptr<Group>> groups_of_stages(Group& everyone, Rank rank, const PlanLayout& layout,
                                                     const std::vector<HostedStage>& hosted) {
  std::vector<std::unique_ptr<Group>> groups(hosted.size());
  for (int stage = 0; stage < layout.stages(); ++stage) {
    const auto mine = std::ranges::find(hosted, stage, &HostedStage::stage);
    const int part = mine == hosted.end() ? hosted.front().part : mine->part;
    const std::vector<int> ranks = layout.ranks_of_stage(stage, part);
    const auto at = std::ranges::find(ranks, rank);
    // Each part of the stage is a group of its own; the ranks that do not have the stage are another, of no use.
    Group group = everyone.split(at == ranks.end() ? -1 : part, static_cast<int>(at - ranks.begin()));
    for (std::size_t i = 0; i < hosted.size(); ++i)
      if (hosted[i].stage == stage) groups[i] = std::make_unique<Group>(std::move(group));
  }
  return groups;
}

std::vector<ShardRange> shards_with_losses(const PlanLayout& layout, int ranks) {
  std::vector<ShardRange> with_losses;
  for (Rank r = 0; r < ranks; ++r) {
    with_losses.push_back({0, 0});
    for (const HostedStage& h : layout.hosted(r))
      if (h.stage == layout.stages() - 1 && h.part == 0 && (r == 0 || !layout.plan().frees_tasks()))
        with_losses.back() = h.shards;
  }
  return with_losses;
}

}  // namespace echelon
