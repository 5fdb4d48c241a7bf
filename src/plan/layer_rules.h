#pragma once
// Plans that treat layers differently: which layers are split over how many ranks, and which stage has them.
//
//   [[layer]]
//   match = "fc*"      # names of layers (base/glob.h); of several rules that fit, the last counts
//   split = "out"      # what its slices are; may be left out, and is refused where the recipe cuts the layer otherwise
//   ways = 4           # over so many ranks of a stage; default: all of them (the plan's `tensor`)
//   stage = 1          # the stage that has it; default: as the work is balanced best
//
// Slices are the recipe's (model.slices), so a rule decides only who computes them: no rule changes a bit. With fewer
// ways than the stage has ranks, neighbours compute the same slices; `split = "none"` is `ways = 1`. `split = "batch"`
// splits the micro-batches of a layer over the ranks instead (plan/batch_split.h). Pure functions.

#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "plan/layer_splits.h"

namespace echelon {

struct PlanSpec;
struct PlanFacts;

struct LayerRule {
  std::string match;
  std::string split;  // empty: however the recipe cuts it
  int ways = 0;       // 0: the plan's `tensor`
  int stage = -1;     // -1: anywhere
  friend bool operator==(const LayerRule&, const LayerRule&) = default;
};

std::vector<LayerRule> read_layer_rules(OptionReader& plan);

// The rule that counts for a layer; null: none.
const LayerRule* rule_of(const std::vector<LayerRule>& rules, const std::string& layer);
// By layer: which stage a rule says that it is on.
std::map<std::string, int> pinned_stages(const std::vector<LayerRule>& rules, const std::vector<std::string>& layers);
// In how many stages layers that are split by batch and others take turns; 0: they do not.
int alternating_stages(const std::vector<LayerRule>& rules, const std::vector<std::string>& layers);

// By layer, where it is not the plan's `tensor`. A layer without slices of its own (an activation) that no rule names
// is split as the layer it reads.
std::map<std::string, int> layer_ways(const PlanSpec& plan, const Graph& graph);

// Why the rules cannot be followed, each with its cure.
void refuse_rules(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why);
// The rules with what cannot be followed changed or left out.
std::vector<LayerRule> mended_rules(const PlanSpec& plan, const PlanFacts& facts);
// As in a plan's file, on one line each: `[[layer]] match = "fc*", ways = 2`.
std::string to_string(const LayerRule& rule);

}  // namespace echelon
