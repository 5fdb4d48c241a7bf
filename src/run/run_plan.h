#pragma once
// The plan of a run (plan/spec.h): from what people write to one that is known to work for this model and these
// workers.

#include <string>

#include "plan/legal.h"
#include "recipe/prepare.h"

namespace echelon {

// What --plan says, or the recipe's [plan] where it says nothing. `flag`: "data=2,pipeline=2", or a file
// (run/plan_file.h). Problems are added, also where the file is missing or no TOML.
PlanSpec read_run_plan(Disk& disk, const Recipe& recipe, const std::string& flag, Problems& problems);

// Adds why the plan cannot be carried out, with the nearest one that can. Returns it with `data` and `segments` filled
// in. `workers` may be 0: not known yet. `cores`: what was asked for; 0: nothing.
PlanSpec check_run_plan(const PreparedRun& prepared, const PlanSpec& plan, int workers, int cores, Problems& problems);

// Whether each core of a worker can be a rank: not of a whole model, whose workers use their cores themselves, nor
// under a system, where more replicas have another result.
bool cores_can_be_ranks(const PreparedRun& prepared, const PlanSpec& plan);
PlanFacts plan_facts(const PreparedRun& prepared, int workers, int cores);

}  // namespace echelon
