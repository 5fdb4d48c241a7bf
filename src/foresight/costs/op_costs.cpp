#include "foresight/costs/op_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/ops/communication.h"

namespace echelon::foresight {

namespace {

// Interpolation runs along one number: what an operation has to do at least, in seconds of the roofline.
double least_seconds(const Roofline& roofline, const OpCost& size) {
  return std::max(size.flops / roofline.flops, size.bytes / roofline.bytes);
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

double CoreSeconds::with(int busy, int cores) const {
  if (cores <= 1 || busy <= 1) return alone;
  const double share = std::min(1.0, static_cast<double>(busy - 1) / static_cast<double>(cores - 1));
  return alone + share * (together - alone);
}

std::string_view name_of(CostSource source) {
  return source == CostSource::measured ? "measured" : source == CostSource::interpolated ? "interpolated" : "roofline";
}

std::string OpCosts::family_of(const Node& node) {
  const std::string detail = node.op->detail();
  return std::string(node.op->name()) + (detail.empty() ? "" : " " + detail);
}

std::string OpCosts::shapes_of(const Graph& graph, const Node& node) {
  std::string text;
  for (const Value v : node.in) text += (text.empty() ? "" : ", ") + to_string(graph.type(v));
  text += " ->";
  for (const Value v : node.out) text += " " + to_string(graph.type(v));
  return text;
}

std::string OpCosts::name_of(const Node& node) {
  return node.layer.empty() ? std::string(node.op->name()) : fmt::format("{} {}", node.layer, node.op->name());
}

bool OpCosts::computes(const Node& node) {
  const std::string_view name = node.op->name();
  return ops::message_of(*node.op) < 0 && ops::contributes_to(*node.op) < 0 && !name.ends_with("_gather");
}

OpCost OpCosts::size_of(const Graph& graph, const Node& node) {
  OpCost size{.seconds = {}, .flops = node.op->flops(graph.types(node.in), graph.types(node.out))};
  if (node.op->is_view()) return size;
  for (const Value v : node.in) size.bytes += static_cast<double>(graph.type(v).bytes());
  for (const Value v : node.out) size.bytes += static_cast<double>(graph.type(v).bytes());
  return size;
}

bool OpCosts::knows(const Graph& graph, const Node& node) const {
  const auto family = families_.find(family_of(node));
  return family != families_.end() && family->second.contains(shapes_of(graph, node));
}

FoundCost OpCosts::of(const Graph& graph, const Node& node) const {
  if (node.op->is_view()) return {{}, CostSource::measured};
  return of(family_of(node), shapes_of(graph, node), size_of(graph, node));
}

FoundCost OpCosts::of(const std::string& name, const std::string& shapes, const OpCost& size) const {
  const auto family = families_.find(name);
  if (family == families_.end() || family->second.empty()) return {roofline_seconds(size), CostSource::roofline};
  if (const auto it = family->second.find(shapes); it != family->second.end())
    return {it->second.seconds, CostSource::measured};
  // The neighbours below and above; outside of what was measured, the nearest in proportion.
  const double wanted = std::max(least_seconds(roofline, size), 1e-12);
  const OpCost *below = nullptr, *above = nullptr;
  for (const auto& [other, cost] : family->second) {
    const double at = least_seconds(roofline, cost);
    if (at <= wanted && (!below || at > least_seconds(roofline, *below))) below = &cost;
    if (at >= wanted && (!above || at < least_seconds(roofline, *above))) above = &cost;
  }
  const auto scaled = [&](const OpCost& c) {
    const double ratio = wanted / std::max(least_seconds(roofline, c), 1e-12);
    return CoreSeconds{c.seconds.alone * ratio, c.seconds.together * ratio};
  };
  if (!below || !above) return {scaled(below ? *below : *above), CostSource::interpolated};
  const double low = least_seconds(roofline, *below), high = least_seconds(roofline, *above);
  if (high <= low * (1 + 1e-9)) return {scaled(*below), CostSource::interpolated};
  const double t = (wanted - low) / (high - low);
  const auto between = [t](double a, double b) { return a + t * (b - a); };
  return {
      {between(below->seconds.alone, above->seconds.alone), between(below->seconds.together, above->seconds.together)},
      CostSource::interpolated};
}

// The share of the roofline that measured operations of about this intensity have reached, and the least that any
// takes.
CoreSeconds OpCosts::roofline_seconds(const OpCost& size) const {
  const double least = least_seconds(roofline, size);
  if (least <= 0) return {};
  const bool arithmetic = size.flops / roofline.flops >= size.bytes / roofline.bytes;
  std::vector<double> slower, together;
  double call = std::numeric_limits<double>::infinity();  // what starting a kernel takes
  for (const auto& [name, shapes] : families_)
    for (const auto& [text, cost] : shapes) {
      const double bound = least_seconds(roofline, cost);
      if (bound <= 0 || cost.seconds.alone <= 0) continue;
      call = std::min(call, cost.seconds.alone);
      if ((cost.flops / roofline.flops >= cost.bytes / roofline.bytes) != arithmetic) continue;
      slower.push_back(cost.seconds.alone / bound);
      together.push_back(cost.seconds.together / cost.seconds.alone);
    }
  const double factor = slower.empty() ? 1.0 : std::max(1.0, median_of(std::move(slower)));
  const double both = together.empty() ? 1.0 : median_of(std::move(together));
  const double alone = std::max(least * factor, std::isfinite(call) ? call : 0.0);
  return {alone, alone * both};
}

void OpCosts::set(const std::string& family, const std::string& shapes, const OpCost& cost) {
  families_[family][shapes] = cost;
}

std::size_t OpCosts::size() const {
  std::size_t sum = 0;
  for (const auto& [name, shapes] : families_) sum += shapes.size();
  return sum;
}

}  // namespace echelon::foresight
