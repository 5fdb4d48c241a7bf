#include "foresight/costs/graph_costs.h"

#include <algorithm>

namespace echelon::foresight {

GraphCosts::GraphCosts(const Graph& graph, const Platform& platform, int busy) : platform_(platform) {
  for (const Node& node : graph.nodes()) {
    flops_.push_back(node.op->flops(graph.types(node.in), graph.types(node.out)));
    all_flops_ += flops_.back();
    seconds_.push_back(0);
    families_.emplace_back(node.op->name());
    names_.push_back(OpCosts::computes(node) && !node.op->is_view() ? OpCosts::name_of(node) : "");
    if (!platform.is_here() || node.op->is_view()) continue;
    const FoundCost found = platform.profile()->ops.of(graph, node);
    seconds_.back() = found.seconds.with(busy, platform.cores_of(0));
    all_seconds_ += seconds_.back();
    if (found.source != CostSource::roofline) measured_ += seconds_.back();
  }
}

double GraphCosts::seconds(int rank, std::size_t node) const {
  return platform_.is_here() ? seconds_[node] : flops_[node] / platform_.speed(rank);
}

double GraphCosts::all(int rank) const {
  return platform_.is_here() ? all_seconds_ : all_flops_ / platform_.speed(rank);
}

void GraphCosts::add_parts(std::map<std::string, double>& parts, double runs) const {
  for (std::size_t n = 0; n < families_.size(); ++n)
    if (const double s = runs * seconds(0, n); s > 0) parts[families_[n]] += s;
}

void GraphCosts::add_operations(int rank, std::map<std::string, double>& operations) const {
  for (std::size_t n = 0; n < names_.size(); ++n)
    if (const double s = seconds(rank, n); s > 0 && !names_[n].empty()) operations[names_[n]] += s;
}

void GraphCosts::add_profiled(const Graph& graph, Prediction& prediction) const {
  for (std::size_t n = 0; n < names_.size(); ++n)
    if (!names_[n].empty())
      prediction.profiled[names_[n]].emplace(OpCosts::family_of(graph.nodes()[n]),
                                             OpCosts::shapes_of(graph, graph.nodes()[n]));
}

void finish_prediction(Prediction& p, const std::map<std::string, double>& parts) {
  for (const RankPrediction& r : p.ranks)
    if (r.compute >= p.compute) p.compute = r.compute, p.exchange = r.exchange;
  p.exchange = std::min(p.exchange, std::max(0.0, p.seconds - p.compute));
  p.parts.assign(parts.begin(), parts.end());
  std::ranges::stable_sort(p.parts, std::greater{}, &std::pair<std::string, double>::second);
}

}  // namespace echelon::foresight
