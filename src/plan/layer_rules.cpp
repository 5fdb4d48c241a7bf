#include "plan/layer_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/glob.h"
#include "base/text.h"
#include "plan/legal.h"
#include "plan/stages.h"

namespace echelon {

std::vector<LayerRule> read_layer_rules(OptionReader& plan) {
  std::vector<LayerRule> rules;
  for (OptionReader& table : plan.tables("layer")) {
    LayerRule& rule = rules.emplace_back();
    table.require("match", "names of layers, as in match = \"fc*\"");
    rule.match = table.text("match", "*");
    if (table.has("split")) rule.split = table.choice("split", "none", split_names());
    rule.ways = static_cast<int>(table.integer("ways", 0, 1, 1 << 16));
    rule.stage = static_cast<int>(table.integer("stage", -1, 0, 1 << 16));
    if (rule.split == "none" && rule.ways > 1)
      table.problem("ways", fmt::format("= {} contradicts split = \"none\", which is ways = 1", rule.ways));
    if (rule.split == "none") rule.ways = 1;
    table.done();
  }
  return rules;
}

const LayerRule* rule_of(const std::vector<LayerRule>& rules, const std::string& layer) {
  for (std::size_t i = rules.size(); i-- > 0;)
    if (fits(rules[i].match, layer)) return &rules[i];
  return nullptr;
}

namespace {

// By layer: how often layers that are split by batch and others have changed before it. A layer that is split
// neither way goes with what comes before it.
std::vector<int> changes_before(const std::vector<LayerRule>& rules, const std::vector<std::string>& layers) {
  std::vector<int> changes;
  bool by_batch = true;
  for (const std::string& layer : layers) {
    const LayerRule* rule = rule_of(rules, layer);
    const bool now = rule && rule->ways != 1 ? rule->split == "batch" : by_batch;
    changes.push_back((changes.empty() ? 0 : changes.back()) + (now != by_batch ? 1 : 0));
    by_batch = now;
  }
  return changes;
}

}  // namespace

int alternating_stages(const std::vector<LayerRule>& rules, const std::vector<std::string>& layers) {
  if (std::ranges::none_of(rules, [](const LayerRule& rule) { return rule.split == "batch"; })) return 0;
  const std::vector<int> changes = changes_before(rules, layers);
  return changes.empty() || changes.back() < 2 ? 0 : changes.back() + 1;
}

std::map<std::string, int> pinned_stages(const std::vector<LayerRule>& rules, const std::vector<std::string>& layers) {
  std::map<std::string, int> stages;
  if (alternating_stages(rules, layers) > 0) {
    const std::vector<int> changes = changes_before(rules, layers);
    for (std::size_t i = 0; i < layers.size(); ++i) stages[layers[i]] = changes[i];
    return stages;
  }
  for (const LayerRule& rule : rules)  // a later rule that says nothing of stages leaves an earlier one's
    for (const std::string& layer : layers)
      if (const int stage = rule.split == "batch" ? 0 : rule.stage; stage >= 0 && fits(rule.match, layer))
        stages[layer] = stage;
  return stages;
}

std::map<std::string, int> layer_ways(const PlanSpec& plan, const Graph& graph) {
  std::map<std::string, int> ways;
  if (plan.layers.empty() && plan.dimensions.empty()) return ways;
  const auto splits = layer_splits(graph);
  for (const Node& node : graph.nodes()) {
    if (node.backward || node.layer.empty() || ways.contains(node.layer)) continue;
    const LayerRule* rule = rule_of(plan.layers, node.layer);
    const auto split = splits.find(node.layer);
    if (rule && rule->ways > 0) {
      ways[node.layer] = rule->ways;
    } else if (split == splits.end()) {  // an activation: as what it reads
      for (Value v : node.in)
        if (graph.info(v).source == ValueInfo::Source::node) {
          const auto from = ways.find(graph.nodes()[static_cast<std::size_t>(graph.info(v).producer)].layer);
          if (from != ways.end()) ways.emplace(node.layer, from->second);
          break;
        }
    } else if (!plan.dimensions.empty() &&
               std::ranges::find(plan.dimensions, split->second.dimension) == plan.dimensions.end()) {
      ways[node.layer] = 1;
    } else {
      ways[node.layer] = plan.tensor;
    }
  }
  std::erase_if(ways, [&](const auto& w) { return w.second == plan.tensor; });
  return ways;
}

namespace {

void refuse_split(const LayerRule& rule, const PlanFacts& facts, const std::vector<std::string>& layers,
                  std::vector<std::string>& why) {
  if (rule.split.empty() || rule.split == "none" || rule.split == "batch") return;
  std::vector<std::string> others;
  bool any = false;
  std::set<std::string> kinds;
  for (const std::string& layer : layers) {
    const auto it = facts.splits.find(layer);
    if (it == facts.splits.end()) continue;
    any = true;
    if (it->second.split == rule.split) continue;
    kinds.insert(it->second.split);
    if (others.size() < 4) others.push_back(fmt::format("'{}' is cut by \"{}\"", layer, it->second.split));
  }
  if (!any && facts.slices > 1)
    why.push_back(
        fmt::format("split = \"{}\" of '{}': none of these layers has slices of its own", rule.split, rule.match));
  if (!any && facts.slices == 1)
    why.push_back(fmt::format("split = \"{}\" of '{}': the recipe has model.slices = 1, so no layer can be split",
                              rule.split, rule.match));
  if (!others.empty())
    why.push_back(
        fmt::format("split = \"{}\" of '{}': the recipe cuts otherwise, {}; write split = \"{}\" or leave it out",
                    rule.split, rule.match, fmt::join(others, ", "), fmt::join(kinds, "\" or \"")));
}

// The largest number of ways up to `ways` that divides both.
int nearest_ways(int ways, int tensor, int slices) {
  for (int w = ways; w > 1; --w)
    if (tensor % w == 0 && slices % w == 0) return w;
  return 1;
}

}  // namespace

void refuse_rules(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  for (const LayerRule& rule : plan.layers) {
    std::vector<std::string> layers;
    for (const std::string& layer : facts.layers)
      if (fits(rule.match, layer)) layers.push_back(layer);
    if (layers.empty()) {
      why.push_back(fmt::format("match = \"{}\" fits no layer{}", rule.match, did_you_mean(rule.match, facts.layers)));
      continue;
    }
    refuse_split(rule, facts, layers, why);
    if (rule.split == "batch" && rule.ways > 0 && rule.ways != plan.tensor)
      why.push_back(fmt::format("split = \"batch\" of '{}' is over all {} ranks of a stage: leave out ways = {}",
                                rule.match, plan.tensor, rule.ways));
    else if (rule.ways > 0 && (plan.tensor % rule.ways != 0 || facts.slices % rule.ways != 0))
      why.push_back(fmt::format("ways = {} of '{}' does not divide {}; the nearest number that works is {}", rule.ways,
                                rule.match,
                                facts.slices % rule.ways != 0 ? fmt::format("model.slices = {}", facts.slices)
                                                              : fmt::format("tensor={}", plan.tensor),
                                nearest_ways(rule.ways, plan.tensor, facts.slices)));
    if (rule.stage >= plan.stages())
      why.push_back(fmt::format("stage = {} of '{}': there are {} stages, 0 to {}", rule.stage, rule.match,
                                plan.stages(), plan.stages() - 1));
  }
  const bool pins = std::ranges::any_of(plan.layers, [](const LayerRule& rule) { return rule.stage >= 0; });
  if (!plan.cuts.empty() && (pins || plan.splits_batch()))
    why.push_back("cuts says where stages begin, and so do the rules of layers: leave out one of them");
  if (why.empty() && !can_cut_into_stages(facts.layers, plan.stages(), pinned_stages(plan.layers, facts.layers)))
    why.push_back(fmt::format(
        "the rules' stages cannot be had: layers go through stages 0 to {} in the order in which they run, and "
        "every stage has at least one",
        plan.stages() - 1));
}

std::vector<LayerRule> mended_rules(const PlanSpec& plan, const PlanFacts& facts) {
  std::vector<LayerRule> mended;
  for (LayerRule rule : plan.layers) {
    if (rule.split != "batch" && rule.split != "none") rule.split.clear();
    if (rule.split != "batch" && rule.ways > 0) rule.ways = nearest_ways(rule.ways, plan.tensor, facts.slices);
    if (rule.split == "batch") rule.ways = 0;
    if (std::ranges::any_of(facts.layers, [&](const std::string& layer) { return fits(rule.match, layer); }))
      mended.push_back(rule);
  }
  PlanSpec tried = plan;
  tried.layers = mended;
  if (std::vector<std::string> why; refuse_rules(tried, facts, why), !why.empty())
    for (LayerRule& rule : mended) rule.stage = -1;
  return mended;
}

std::string to_string(const LayerRule& rule) {
  std::string text = fmt::format("[[layer]] match = \"{}\"", rule.match);
  if (!rule.split.empty()) text += fmt::format(", split = \"{}\"", rule.split);
  if (rule.ways > 0 && rule.split != "none") text += fmt::format(", ways = {}", rule.ways);
  if (rule.stage >= 0) text += fmt::format(", stage = {}", rule.stage);
  return text;
}

}  // namespace echelon
