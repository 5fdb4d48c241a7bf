#include "parallel/planned/stage_plans.h"

#include <algorithm>

#include "plan/cut_stage.h"
#include "plan/joins.h"
#include "plan/recompute.h"
#include "plan/sequence.h"
#include "plan/shard_state.h"

namespace echelon {

namespace {

std::vector<StagePlan::NodeInfo> describe_nodes(const Graph& graph) {
  using Kind = StagePlan::NodeInfo::Kind;
  const auto kind_of = [](std::string_view op) {
    if (op == "send") return Kind::sends;
    if (op == "receive") return Kind::receives;
    if (op == "start_gather" || op == "finish_gather") return Kind::gathers;
    return op == "contribute" ? Kind::contributes : Kind::computes;
  };
  std::vector<StagePlan::NodeInfo> nodes;
  for (const Node& node : graph.nodes())
    nodes.push_back({node.op->flops(graph.types(node.in), graph.types(node.out)), kind_of(node.op->name())});
  return nodes;
}

Graph training_graph(const models::Model& model, std::int64_t samples) {
  return optimise(std::move(model.training(samples).front().graph));
}

StagePartition partition_of(const Graph& graph, const PlanLayout& layout) {
  std::vector<LayerWork> work = layer_work(graph);
  std::vector<std::string> layers;
  for (LayerWork& l : work) {
    layers.push_back(l.layer);
    if (layout.splits_batch()) l.work = 0;  // every rank has all stages: only what is sent counts
  }
  if (!layout.plan().cuts.empty()) return cut_at(work, layout.plan().cuts);
  return cut_into_stages(work, layout.stages(), pinned_stages(layout.plan().layers, layers));
}

PartCounts part_counts(const Graph& graph, const PlanLayout& layout) {
  PartCounts counts{.parts = layout.parts(), .ways = layer_ways(layout.plan(), graph)};
  for (int stage = 0; stage < layout.stages(); ++stage) counts.of_stage.push_back(layout.parts(stage));
  return counts;
}

}  // namespace

StagePlans::StagePlans(const models::Model& model, const PlanLayout& layout, std::int64_t largest_shard,
                       OfLength of_length)
    : model_(model),
      layout_(layout),
      largest_shard_(largest_shard),
      partition_(partition_of(training_graph(model, largest_shard), layout)),
      of_length_(std::move(of_length)) {}

Graph StagePlans::whole(MicroBatchSize size) const {
  const auto other = size.length > 0 ? of_length_(size.length) : nullptr;
  const Graph graph = training_graph(other ? *other : model_, size.samples);
  const PartCounts counts = part_counts(graph, layout_);
  return spread_sums(layout_.plan().sequence ? spread_rows(graph, partition_, counts) : graph, partition_, counts);
}

StageSegments StagePlans::segments(std::int64_t samples) const {
  const Graph graph = whole(samples);
  return segments_of_stages(graph, place_nodes(graph, partition_, part_counts(graph, layout_)), partition_.stages());
}

const StagePlans::CutGraph& StagePlans::prepare(MicroBatchSize size, const std::vector<HostedStage>& wanted) {
  if (const auto it = cuts_.find(size); it != cuts_.end()) return it->second;
  const PlanSpec& spec = layout_.plan();
  const Graph graph = whole(size);
  CutGraph& made = cuts_[size];
  made.placed = place_nodes(graph, partition_, part_counts(graph, layout_));
  for (StageMessage& m : made.placed.messages)
    m.buffers = m.inside_stage() ? layout_.buffers_inside_stage() : layout_.message_buffers();
  made.plans.resize(static_cast<std::size_t>(partition_.stages() * layout_.parts()));
  for (const HostedStage& h : wanted) {
    auto& stage = made.plans[static_cast<std::size_t>(h.stage * layout_.parts() + h.part)];
    if (stage) continue;
    StageGraph cut = cut_stage(graph, made.placed, h.stage, h.part, layout_.splits_weights(), spec.segments);
    const auto segments = cut.segments;  // of a plan that computes nothing again and shares nothing
    std::vector<bool> trained;
    for (const Value c : cut.graph.contributions()) trained.push_back(static_cast<bool>(c));
    cut = shard_state(recompute(std::move(cut), spec.recompute), spec.zero, spec.prefetch);
    std::vector<StagePlan::NodeInfo> nodes = describe_nodes(cut.graph);
    std::vector<std::size_t> parts(cut.begin.begin() + 1, cut.begin.begin() + 3);
    for (const auto& of_pass : segments)
      if (!of_pass.empty()) parts.insert(parts.end(), of_pass.begin() + 1, of_pass.end());
    std::ranges::sort(parts);
    stage = std::make_unique<const StagePlan>(StagePlan{lay_out(std::move(cut.graph), true, parts), cut.begin, segments,
                                                        std::move(nodes), std::move(trained)});
  }
  return made;
}

}  // namespace echelon
