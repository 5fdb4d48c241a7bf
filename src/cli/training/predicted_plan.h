#pragma once
// What is known about a split model before it runs, for cluster.json and summary.json of a run: who has which layers,
// how long ranks will be idle, what they will send. The page shows it beside what came of it.

#include "base/json.h"
#include "plan/spec.h"
#include "recipe/prepare.h"

namespace echelon::cli {

// {"plan", "stages": [{"stage", "part", "ranks", "layers"}], "idle", "bytes_per_step"}. `plan` is legal and splits the
// model. `bytes_per_step` is missing where ranks also sum gradients or gather weights, whose bytes depend on how.
Json predicted_plan(const PreparedRun& prepared, const PlanSpec& plan);

}  // namespace echelon::cli
