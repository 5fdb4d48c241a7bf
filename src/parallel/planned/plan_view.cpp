#include "parallel/planned/plan_view.h"

#include <algorithm>

#include "collective/shard_tree.h"
#include "parallel/planned/gradient_buckets.h"
#include "parallel/planned/shard_ranges.h"
#include "parallel/planned/stage_compute.h"
#include "parallel/planned/stage_messages.h"
#include "plan/check.h"

namespace echelon {

namespace {

std::vector<HeldParameter> held_parameters(const StagePlan& plan, const ParameterTable& table) {
  std::vector<HeldParameter> held;
  for (std::size_t p = 0; p < table.entries().size(); ++p)
    held.push_back({p, table.entries()[p].offset, table.entries()[p].size, plan.trained[p]});
  return held;
}

std::size_t whole_floats(const models::Model& model) {
  ParameterTable table;
  for (const auto& phase : model.training(1)) table.include(phase.graph);
  table.include(model.evaluation(1));
  return table.floats();
}

double flops_of_pass(const StagePlan& plan, Pass pass) {
  double sum = 0;
  for (std::size_t n = plan.first(pass); n < plan.last(pass); ++n)
    sum += work_of(plan.plan.graph, plan.plan.graph.nodes()[n]);
  return sum;
}

RankBytes bytes_of(const PlanLayout& layout, const StagePlans::CutGraph& cut, const std::vector<std::vector<int>>& live,
                   int rank, std::size_t slots) {
  RankBytes bytes;
  const auto position = static_cast<std::size_t>(layout.position_of(rank));
  std::size_t arena = 0;
  for (const HostedStage& h : layout.hosted(rank)) {
    const StagePlan& stage = cut.of(h.stage, h.part);
    const Plan& plan = stage.plan;
    ParameterTable table;
    table.include(plan.graph);
    const std::size_t floats = table.floats();
    const PlanSpec& spec = layout.plan();
    std::size_t own = floats, parameters = floats;
    if (spec.zero > 0) {
      const std::vector<int> ranks = layout.ranks_of_stage(h.stage, h.part);
      const auto ranges = shard_ranges(held_parameters(stage, table), floats, static_cast<int>(ranks.size()));
      own = ranges[static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin())].count();
      if (spec.zero >= 3) parameters = spec.offloads_parameters() ? own : largest_range(ranges);
    }
    const bool in_files = spec.offloads_parameters();
    (in_files ? bytes.disk : bytes.parameters) +=
        parameters * sizeof(float) * static_cast<std::size_t>(1 + spec.staleness(h.stage));
    if (spec.zero >= 2) {
      (in_files ? bytes.disk : bytes.contributions) +=
          ShardReducer::memory_bytes(layout.shards(), 0, layout.shards(), own);
      bytes.contributions += gradient_buckets(stage, table).bytes();
    } else {
      bytes.contributions += StageCompute::contribution_bytes(layout, h.stage, h.part, floats);
    }
    (spec.offload.empty() ? bytes.state : bytes.disk) += slots * own * sizeof(float);
    bytes.activations +=
        plan.memory.kept_bytes * static_cast<std::size_t>(layout.places(
                                     live[position][static_cast<std::size_t>(layout.checked_stage(h.stage, h.part))]));
    arena = std::max(arena, plan.memory.arena_bytes);
  }
  bytes.activations += arena;
  bytes.messages = StageMessages::buffer_bytes(layout, cut.placed.messages);
  return bytes;
}

// To other ranks, for all of its micro-batches.
double sent_in_a_step(const PlanLayout& layout, const std::vector<StageMessage>& messages, int rank) {
  double sent = 0;
  const int replica = layout.replica_of(rank);
  for (const HostedStage& h : layout.hosted(rank))
    for (const StageMessage& m : messages) {
      if (m.from != h.stage || m.from_part != h.part) continue;
      for (int shard = h.shards.first; shard < h.shards.last; shard += h.shards.stride)
        if (layout.rank_of(replica, layout.line_of(shard), m.to, m.to_part) != rank) sent += m.bytes;
    }
  return sent;
}

}  // namespace

PlanView view_plan(const models::Model& model, const PlanLayout& layout, std::int64_t samples, std::size_t slots) {
  StagePlans plans(model, layout, samples);
  std::vector<HostedStage> all;
  for (int stage = 0; stage < layout.stages(); ++stage)
    for (int part = 0; part < layout.parts(stage); ++part) all.push_back({stage, part, 0, {}});
  const StagePlans::CutGraph& cut = plans.prepare(samples, all);

  PlanView view;
  view.messages = cut.placed.messages;
  ReplayCosts costs;
  double longest = 1;
  for (const auto& [stage, part, line, shards] : all) {
    const StagePlan& plan = cut.of(stage, part);
    StageView& s =
        view.stages.emplace_back(StageView{.stage = stage,
                                           .part = part,
                                           .ranks = layout.ranks_of_stage(stage, part),
                                           .layers = plans.partition().layers[static_cast<std::size_t>(stage)]});
    for (std::size_t p = 0; p < plan.plan.graph.parameters().size(); ++p)
      if (plan.trained[p]) s.weights += plan.plan.graph.parameters()[p].shape.elements();
    s.flops = plan.plan.flops;
    for (const StageMessage& m : view.messages)
      if (m.from == stage && m.from_part == part) s.sends += m.bytes;
    if (layout.checked_stage(stage, part) < static_cast<int>(costs.stages.size())) {
      s.work = view.stages[view.stages.size() - 2].work;
      continue;  // parts do the same at the same time
    }
    costs.stages.push_back(
        {flops_of_pass(plan, Pass::forward), flops_of_pass(plan, Pass::backward), flops_of_pass(plan, Pass::weights)});
    s.work = costs.stages.back().forward + costs.stages.back().backward + costs.stages.back().weights;
    longest = std::max(longest, costs.stages.back().forward);
  }
  for (StageCost& c : costs.stages) c.forward /= longest, c.backward /= longest, c.weights /= longest;
  view.schedule = replay(layout.checked_schedule(0), layout.checked_messages(view.messages), costs);
  for (std::size_t r = 0; r < view.schedule.ranks.size(); ++r)  // what it did, in the plan's own stages
    for (std::size_t i = 0; i < view.schedule.ranks[r].size(); ++i)
      view.schedule.ranks[r][i].task = layout.schedule(0).ranks[r][i];

  const std::size_t whole = whole_floats(model) * sizeof(float);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const ScheduleCheck check =
        check_schedule(layout.checked_schedule(layout.replica_of(rank)), layout.checked_messages(view.messages));
    view.ranks.push_back(bytes_of(layout, cut, check.live, rank, slots));
    view.sent.push_back(sent_in_a_step(layout, view.messages, rank));
    if (layout.plan().evaluate == "all")
      view.ranks.back().model = whole;
    else if (rank == 0)
      view.ranks.back().disk += whole;
  }
  return view;
}

}  // namespace echelon
