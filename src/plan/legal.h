#pragma once
// Which plans can be carried out: what a recipe and its workers allow, why a plan does not work, all that do, and the
// nearest one. Pure functions.

#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "plan/layer_rules.h"
#include "plan/spec.h"

namespace echelon {

// What decides whether a plan can be carried out.
struct PlanFacts {
  int workers = 0;                                // 0: not known yet, so nothing is said that depends on them
  int shards = 1;                                 // of a batch
  int slices = 1;                                 // of the model's layers
  std::vector<std::string> layers = {};           // of the network, in order
  std::map<std::string, LayerSplit> splits = {};  // by layer: how its slices are cut
  int phases = 1;                                 // of a training step
  std::string system = {};                        // under which the workers train together; empty: exact training
  int cores = 1;                                  // asked for on each worker
  bool carries = false;                           // values go from step to step (streams of text)
  std::string shared_weight = {};                 // that several layers read; empty: none
};

// Why the plan cannot be carried out, each with its cure; none if it can. `data` is filled in where it is the rest.
std::vector<std::string> refusals(PlanSpec& plan, const PlanFacts& facts);

// All plans that can be carried out, with `data` filled in; facts.workers is known.
std::vector<PlanSpec> legal_plans(const PlanFacts& facts);

// The legal plan that differs least; a plan of one replica alone if there is none.
PlanSpec nearest_plan(const PlanSpec& plan, const PlanFacts& facts);

// Adds every refusal to the problems, and with the last one the nearest plan that works.
PlanSpec check_plan(PlanSpec plan, const PlanFacts& facts, Place place, Problems& problems);

}  // namespace echelon
