#pragma once
// The prediction of a run, made before its first step and stored with what came of it: in summary.json ("predicted"),
// and beside the profile of this machine (foresight/outcomes.h).

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/runs/run_cluster.h"
#include "cli/training/world_flags.h"
#include "foresight/prediction.h"
#include "recipe/prepare.h"
#include "run/summary.h"
#include "track/run.h"

namespace echelon::cli {

struct PredictedRun {
  foresight::Prediction prediction;
  std::string kind;  // foresight/outcomes.h
};

// Null where nothing can be said: a network that this machine has not measured, workers that are not known, a system
// with a result of its own. Of workers on a network see predict_on_network. Never throws.
std::shared_ptr<const PredictedRun> predict_run(const PreparedRun& prepared, const PlanSpec& plan,
                                                const WorldFlags& world, int workers);

// The same of workers that others have started (mpi, tcp), when they are there: `hosts` by rank, and what links between
// them cost. What the profile has of two hosts counts before that. `one_memory`: they share this machine's.
std::shared_ptr<const PredictedRun> predict_on_network(const PreparedRun& prepared, const PlanSpec& plan,
                                                       const WorldFlags& world, const std::vector<std::string>& hosts,
                                                       const LinkCosts& links, bool one_memory);

// Keeps in the profile what messages between hosts cost. What the disk refuses is not kept.
void keep_host_pairs(const std::vector<RunCluster::HostPair>& pairs);

// What a run has shown of its own speed (cli/training/step_sampler.h).
struct SampledSteps {
  double seconds = 0;                                     // of a step; 0: not known
  std::vector<std::map<std::string, double>> operations;  // by rank, of one run of each
};

// After the run: what it was like beside `predicted`, which is added to the summary, and kept. Returns what to say
// about a prediction that was far off; empty if it was not.
std::string store_outcome(const PredictedRun& predicted, const RunSummary& summary, const SampledSteps& sampled,
                          const RunFolder& folder, const PreparedRun& prepared, nlohmann::ordered_json& json);

// The plan for `--plan auto`, found as `echelon plan` does; says on stderr which one and why. BadInput if none fits.
PlanSpec choose_plan(const PreparedRun& prepared, const WorldFlags& world, int workers, const std::string& memory);

}  // namespace echelon::cli
