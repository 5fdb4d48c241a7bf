#include "parallel/planned/stage_plans.h"

#include "plan/recompute.h"
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

}  // namespace

StagePlans::StagePlans(const models::Model& model, const PlanLayout& layout, std::int64_t largest_slice)
    : model_(model),
      parts_(layout.parts()),
      splits_weights_(layout.splits_weights()),
      spec_(layout.plan()),
      largest_slice_(largest_slice),
      partition_(layout.plan().cuts.empty() ? cut_into_stages(layer_work(whole(largest_slice)), layout.stages())
                                            : cut_at(layer_work(whole(largest_slice)), layout.plan().cuts)) {}

Graph StagePlans::whole(std::int64_t slice) const { return optimise(std::move(model_.training(slice).front().graph)); }

const StagePlans::Slice& StagePlans::prepare(std::int64_t slice, const std::vector<HostedStage>& wanted) {
  if (const auto it = slices_.find(slice); it != slices_.end()) return it->second;
  const Graph graph = whole(slice);
  Slice& made = slices_[slice];
  made.placed = place_nodes(graph, partition_, parts_);
  made.plans.resize(static_cast<std::size_t>(partition_.stages() * parts_));
  for (const HostedStage& h : wanted) {
    auto& stage = made.plans[static_cast<std::size_t>(h.stage * parts_ + h.part)];
    if (stage) continue;
    StageGraph cut = cut_stage(graph, made.placed, h.stage, h.part, splits_weights_);
    std::vector<bool> trained;
    for (const Value c : cut.graph.contributions()) trained.push_back(static_cast<bool>(c));
    cut = shard_state(recompute(std::move(cut), spec_.recompute), spec_.zero, spec_.prefetch);
    std::vector<StagePlan::NodeInfo> nodes = describe_nodes(cut.graph);
    stage = std::make_unique<const StagePlan>(
        StagePlan{lay_out(std::move(cut.graph), true, std::span(cut.begin).subspan(1, 2)), cut.begin, std::move(nodes),
                  std::move(trained)});
  }
  return made;
}

}  // namespace echelon
