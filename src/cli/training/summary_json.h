#pragma once
// What a training run has come to, as --json prints it and the run's folder keeps it.

#include <nlohmann/json.hpp>

#include "recipe/prepare.h"
#include "run/summary.h"
#include "track/run.h"
#include "world/world.h"

namespace echelon::cli {

nlohmann::ordered_json to_json(const RunSummary& summary, const RunFolder& folder, const PreparedRun& prepared,
                               const World& world);

// Adds what was predicted of a split model (cli/training/predicted_plan.h), and what came of it: the share of time in
// which ranks did not compute.
void add_plan(nlohmann::ordered_json& json, const Json& plan, const RunSummary& summary);

}  // namespace echelon::cli
