#pragma once
// `echelon train --elastic`: workers that are lost do not end a run. The launcher keeps the run's state
// (world/os/kept_state.h); when a worker's process is killed, the others end, and a new generation of workers begins
// with that state: as many as before, or one less.

#include <functional>

#include "cli/training/train_rank.h"

namespace echelon::cli {

Elastic read_elastic(const std::string& text);  // what --elastic was given; "": no. BadInput if it is none

// Whether a run with so many workers can be had; adds problems where not.
using CheckWorkers = std::function<void(int workers, Problems& problems)>;
// What a rank does in the world that was made for it.
using RankProgram = std::function<void(World& world, const TrainSettings& settings)>;

// Runs `program` on the world of the settings until it has ended by itself, whatever happens to the workers. Throws as
// run_on_world does for other failures, and for a loss when ten generations in a row have not done a single step.
// BadInput if this process does not start all the workers itself.
void run_elastic(const TrainSettings& settings, const LaunchOptions& options, const TrainingJob& job,
                 const CheckWorkers& check, const RankProgram& program);

}  // namespace echelon::cli
