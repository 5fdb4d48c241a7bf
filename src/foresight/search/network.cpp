#include "foresight/search/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::foresight {

SearchProblem search_problem(const LayerTable& table, const Platform& platform) {
  SearchProblem p{.layers = {}, .devices = platform.ranks(), .links = {}};
  for (const LayerCost& l : table.layers)
    p.layers.push_back({.name = l.name,
                        .seconds = table.shards * l.seconds(1),
                        .weight_bytes = 4 * (l.split_floats + l.whole_floats),
                        .out_bytes = table.shards * l.sends,
                        .splits = l.has_weights});
  const LinkCosts& links = platform.links();
  const int on_machine = platform.ranks_on(0);
  if (on_machine > 1 && on_machine < platform.ranks())
    p.links.push_back({.devices = on_machine, .per_byte = links.host_per_byte, .latency = links.host_latency});
  if (!platform.is_here()) {
    int on_switch = 0;
    for (int r = 0; r < platform.ranks(); ++r)
      if (platform.switch_of(platform.machine_of(r)) == platform.switch_of(platform.machine_of(0))) ++on_switch;
    if (on_switch > on_machine && on_switch < platform.ranks()) {
      p.links.push_back({.devices = on_switch,
                         .per_byte = 1 / platform.bytes_per_second(0, on_switch - 1),
                         .latency = platform.latency(0, on_switch - 1)});
      const int last = platform.ranks() - 1;
      p.links.push_back({.devices = platform.ranks(),
                         .per_byte = 1 / platform.bytes_per_second(0, last),
                         .latency = platform.latency(0, last)});
      return p;
    }
  }
  p.links.push_back({.devices = std::max(1, platform.ranks()), .per_byte = links.per_byte, .latency = links.latency});
  return p;
}

namespace {

// All layers in one stage: data parallel up to some layer, split from then on.
std::optional<PlanSpec> weird_trick(const SearchProblem& p, const Strategy& s, const PlanFacts& facts) {
  const int devices = s.layers.front().devices();
  std::size_t split = 0;
  while (split < s.layers.size() && s.layers[split].parts == 1) ++split;
  if (split == s.layers.size()) return PlanSpec{.data = devices};
  if (split == 0) {
    PlanSpec plan{.data = 1, .tensor = devices};
    return refusals(plan, facts).empty() ? std::optional(plan) : std::nullopt;
  }
  // A small layer among those that are split is split too: the plan has no other place for it, and is replayed as it
  // is.
  double weights = 0, others = 0;
  for (std::size_t l = split; l < s.layers.size(); ++l)
    if (p.layers[l].splits) (s.layers[l].parts == devices ? weights : others) += p.layers[l].weight_bytes;
  if (others > 0.1 * weights) return std::nullopt;
  PlanSpec plan{.data = 1, .tensor = devices};
  plan.scheme = "c";
  for (std::size_t l = 0; l < split; ++l) plan.layers.push_back({.match = p.layers[l].name, .split = "batch"});
  plan.layers.push_back({.match = p.layers[split].name, .split = {}, .stage = 1});
  return refusals(plan, facts).empty() ? std::optional(plan) : std::nullopt;
}

}  // namespace

std::optional<PlanSpec> plan_of(const SearchProblem& p, const Strategy& s, const PlanFacts& facts) {
  if (s.layers.empty()) return std::nullopt;
  const int stages = s.layers.back().stage + 1;
  if (stages == 1) return weird_trick(p, s, facts);
  PlanSpec plan{.data = s.layers.front().replicas, .pipeline = stages};
  for (std::size_t l = 0; l < s.layers.size(); ++l) {
    if (s.layers[l].parts > 1 || s.layers[l].replicas != plan.data) return std::nullopt;
    if (l > 0 && s.layers[l].stage != s.layers[l - 1].stage) plan.cuts.push_back(p.layers[l].name);
  }
  return refusals(plan, facts).empty() ? std::optional(plan) : std::nullopt;
}

std::string to_string(const SearchProblem& p, const Strategy& s) {
  std::string text;
  for (std::size_t first = 0; first < s.layers.size();) {
    std::size_t last = first;
    while (last + 1 < s.layers.size() && s.layers[last + 1] == s.layers[first]) ++last;
    const LayerPlace& at = s.layers[first];
    text += fmt::format("{}{}{}: {}{} replica{}{}", text.empty() ? "" : "; ", p.layers[first].name,
                        last > first ? " ... " + p.layers[last].name : "",
                        s.layers.back().stage > 0 ? fmt::format("stage {}, ", at.stage) : "", at.replicas,
                        at.replicas == 1 ? "" : "s", at.parts > 1 ? fmt::format(" x {} parts", at.parts) : "");
    first = last + 1;
  }
  return text;
}

}  // namespace echelon::foresight
