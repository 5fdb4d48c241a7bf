// A step of a model that is split over ranks (parallel/planned/planned_engine.h): its lists are replayed; then all
// ranks learn the losses, each stage sums its gradients over the ranks that have it, updates what it owns, and
// parameters that others read are handed out.

#include <algorithm>
#include <cmath>

#include "foresight/costs/collective_costs.h"
#include "foresight/costs/graph_costs.h"
#include "foresight/costs/measure.h"
#include "foresight/predict.h"
#include "foresight/replay/list_replay.h"
#include "graph/ops/communication.h"
#include "parallel/planned/shard_ranges.h"
#include "parallel/planned/stage_plans.h"
#include "run/memory_limit.h"

namespace echelon::foresight {

namespace {

using Kind = ReplayStep::Kind;

double bytes_of_first(const Graph& graph, const Node& node) {
  const Value v = node.out.empty() ? node.in.front() : node.out.front();
  return static_cast<double>(graph.type(v).bytes());
}

PassSteps steps_of(const StagePlan& plan, const GraphCosts& costs, Pass pass) {
  using NodeKind = StagePlan::NodeInfo::Kind;
  PassSteps steps;
  const Graph& graph = plan.plan.graph;
  for (std::size_t n = plan.first(pass); n < plan.last(pass); ++n) {
    const Node& node = graph.nodes()[n];
    const NodeKind kind = plan.nodes[n].kind;
    if (kind == NodeKind::computes) {
      if (steps.empty() || steps.back().kind != Kind::computes) steps.push_back({.kind = Kind::computes});
      steps.back().seconds += costs.seconds(0, n);
      steps.back().flops += plan.nodes[n].flops;
      continue;
    }
    const double bytes = bytes_of_first(graph, node);
    if (kind == NodeKind::sends || kind == NodeKind::receives)
      steps.push_back({.kind = kind == NodeKind::sends ? Kind::sends : Kind::receives,
                       .number = ops::message_of(*node.op),
                       .bytes = bytes});
    else if (kind == NodeKind::contributes)
      steps.push_back({.kind = Kind::contributes, .number = ops::contributes_to(*node.op), .bytes = bytes});
    else
      steps.push_back({.kind = node.op->name() == "start_gather" ? Kind::starts_gather : Kind::finishes_gather,
                       .number = node.out.front().id,
                       .bytes = bytes});
    // The two halves of a gather are one parameter: what the second reads is what the first gave.
    if (kind == NodeKind::gathers && !node.in.empty()) steps.back().number = node.in.front().id;
  }
  return steps;
}

// The ranges that ranks own end at borders of blocks of the update, and one of them is the largest.
double unequal_ranges(const StagePlan& plan, const ParameterTable& table, std::size_t ranks) {
  std::vector<HeldParameter> held;
  for (std::size_t p = 0; p < table.entries().size(); ++p)
    held.push_back({p, table.entries()[p].offset, table.entries()[p].size, plan.trained[p]});
  const auto ranges = shard_ranges(held, table.floats(), static_cast<int>(ranks));
  return static_cast<double>(largest_range(ranges) * ranks) /
         static_cast<double>(std::max<std::size_t>(1, table.floats()));
}

bool clips_by_norm(const Recipe& recipe) { return recipe.optim.items.contains("clip_norm"); }

}  // namespace

Prediction predict_split(const PreparedRun& prepared, const PlanSpec& plan, const Platform& platform,
                         const PredictOptions& options) {
  const int shards = static_cast<int>(prepared.recipe.train.shards);
  const PlanLayout layout(plan, shards);
  const std::int64_t samples = micro_batch(prepared);
  StagePlans plans(*prepared.model, layout, samples);
  std::vector<HostedStage> all;
  for (int stage = 0; stage < layout.stages(); ++stage)
    for (int part = 0; part < layout.parts(stage); ++part) all.push_back({stage, part, 0, {}});
  const StagePlans::CutGraph& cut = plans.prepare(samples, all);

  Prediction result{.plan = plan,
                    .workers = platform.ranks(),
                    .samples = static_cast<double>(prepared.batch_sequence().largest_batch())};
  const int busy = platform.is_here() ? platform.busy() : 1;
  const double turns = platform.is_here() ? platform.turns() : 1.0;
  result.busy = busy;
  const ModelSize size = model_size(prepared);
  const auto measured = [&](const std::string& family, const std::string& shapes, double bytes) {
    if (!platform.is_here()) return 0.0;
    return platform.profile()
        ->ops.of(family, shapes, {.seconds = {}, .flops = 0, .bytes = bytes})
        .seconds.with(busy, platform.cores_of(0));
  };
  const double floats = static_cast<double>(size.floats);
  const double a_shard = measured(shard_family, shard_shapes(size.floats, size.sample_bytes, samples), 4 * floats) /
                         floats;  // for each number
  const double input = measured(input_family, input_shapes(prepared), static_cast<double>(size.sample_bytes));
  const double an_update =
      measured(update_family(prepared.recipe), update_shapes(size.floats, shards), 4 * floats) / floats;

  std::vector<StagePasses> passes(static_cast<std::size_t>(layout.stages() * layout.parts()));
  std::vector<double> floats_of(passes.size());
  std::map<std::string, double> parts;
  std::vector<std::map<std::string, double>> operations(options.operations ? passes.size() : 0);
  double known = 0, all_of_it = 0;
  for (const HostedStage& h : all) {
    const StagePlan& stage = cut.of(h.stage, h.part);
    const GraphCosts costs(stage.plan.graph, platform, busy);
    const auto at = static_cast<std::size_t>(h.stage * layout.parts() + h.part);
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::weights})
      passes[at].of[static_cast<std::size_t>(pass)] = steps_of(stage, costs, pass);
    ParameterTable table;
    table.include(stage.plan.graph);
    floats_of[at] = static_cast<double>(table.floats());
    if (plan.zero > 0) passes[at].unequal = unequal_ranges(stage, table, layout.ranks_of_stage(h.stage, h.part).size());
    // Loading a micro-batch and folding its gradient, at the end of the last pass.
    PassSteps& last = passes[at].of[static_cast<std::size_t>(layout.splits_weights() ? Pass::weights : Pass::backward)];
    last.push_back({.kind = Kind::computes, .seconds = a_shard * floats_of[at]});
    if (h.stage == 0 && platform.crowd() >= platform.cores_of(0))  // the loader has no core of its own
      last.back().seconds += input * static_cast<double>(samples) / layout.parts(0);
    const double seconds = costs.all(0);
    known += seconds * costs.measured_share(), all_of_it += seconds;
    if (options.operations) costs.add_operations(0, operations[at]), costs.add_profiled(stage.plan.graph, result);
    costs.add_parts(parts, static_cast<double>(shards) / plan.data / static_cast<double>(layout.stages()));
  }
  result.measured = all_of_it > 0 ? known / all_of_it : 1;

  const bool few = platform.ranks() <= 128 || !platform.alike() || plan.replicas_are_neighbours();
  const int played = few ? platform.ranks() : layout.ranks_of_replica();
  ListReplay replay(layout, platform, cut.placed.messages, passes, played);
  replay.run();
  invariant(replay.complete(), "the lists of a legal plan can be run");
  result.ranks = replay.ranks();

  const double through = *std::ranges::max_element(replay.ends());
  const double losses = small_all_gather_seconds(platform, 8 + 16.0 * shards / platform.ranks());
  std::vector<double> ends(replay.ends().size());
  for (int r = 0; r < played; ++r) {
    RankPrediction& rank = result.ranks[static_cast<std::size_t>(r)];
    if (const double waits = through - replay.ends()[static_cast<std::size_t>(r)]; waits > 0)
      rank.waits[static_cast<int>(std::ranges::max_element(replay.ends()) - replay.ends().begin())] += waits;
    rank.runs = turns * std::ceil(static_cast<double>(shards) / plan.data);
    double tail = losses;
    for (const HostedStage& h : layout.hosted(r)) {
      const auto at = static_cast<std::size_t>(h.stage * layout.parts() + h.part);
      if (options.operations) rank.operations.insert(operations[at].begin(), operations[at].end());
      const std::vector<int> group = layout.ranks_of_stage(h.stage, h.part);
      const auto n = static_cast<double>(group.size());
      const double bytes = 4 * floats_of[at];
      double own = floats_of[at];
      const HalfSumCost sum = owners_half(platform, group);
      const double half = group.size() > 1 ? sum.seconds(bytes * passes[at].unequal) : 0;
      // Parameters are gathered around a ring.
      const double gather = group.size() < 2 ? 0
                            : platform.shares_memory()
                                ? half
                                : (n - 1) * sum.message + bytes * passes[at].unequal * sum.per_byte;
      if (plan.zero == 0) tail += 2 * half, rank.send_to_others(group, r, 2 * bytes * (n - 1) / n);
      if (plan.zero > 0) own /= n;
      if (plan.zero == 1) tail += half, rank.send_to_others(group, r, bytes * (n - 1) / n);
      if (plan.zero == 1 || plan.zero == 2) tail += gather, rank.send_to_others(group, r, bytes * (n - 1) / n);
      tail += turns * own * an_update;
    }
    if (clips_by_norm(prepared.recipe)) tail += small_all_gather_seconds(platform, 64);
    for (const PlacedGraph::Copy& c : cut.placed.copies)
      if (c.owner != c.reader) {
        const int from = layout.rank_of(0, 0, c.owner, c.owner_part),
                  to = layout.rank_of(0, 0, c.reader, c.reader_part);
        double bytes = 0;
        for (const Parameter& p : cut.of(c.owner, c.owner_part).plan.graph.parameters())
          if (p.name == c.parameter) bytes = 4.0 * static_cast<double>(p.shape.elements());
        if (from != to) tail += platform.latency(from, to) + bytes / platform.bytes_per_second(from, to);
      }
    rank.exchange += tail;
    ends[static_cast<std::size_t>(r)] = through + tail;
  }
  result.seconds = *std::ranges::max_element(ends);
  parts["sum over replicas, update, losses"] += result.seconds - through;
  if (plan.has_own_result()) {  // the pipeline never runs empty: the stage with the most work says how fast
    const PipelineSchedule& schedule = layout.schedule(0);
    const double steps =
        schedule.per_update > 0 ? static_cast<double>(schedule.micro_batches) / schedule.per_update : 1;
    double busiest = 0;
    for (const RankPrediction& r : result.ranks) busiest = std::max(busiest, (r.compute + r.exchange) / steps);
    for (RankPrediction& r : result.ranks) {
      r.compute /= steps, r.exchange /= steps, r.sent /= steps, r.waits.clear();
      for (auto& [to, bytes] : r.sent_to) bytes /= steps;
    }
    result.seconds = busiest;
  }
  if (platform.ranks() <= 64) {
    const PlanView view = view_run_plan(prepared, plan);
    for (int r = 0; r < played; ++r)
      result.ranks[static_cast<std::size_t>(r)].bytes = view.ranks[static_cast<std::size_t>(r)];
  }
  finish_prediction(result, parts);
  return result;
}

}  // namespace echelon::foresight
