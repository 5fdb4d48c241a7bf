#pragma once
// From a recipe that has been prepared and found good to a training job.

#include "recipe/prepare.h"
#include "run/training/training.h"

namespace echelon {

// `prepared` must outlive the job. The job's fingerprints are what a checkpoint is compared with on resuming: the model
// (parameters by name and shape, and the model's table), the data's content, and everything in the recipe that decides
// about the weights (batch, shards, seed, update rule, schedule, transforms of the data), but not how long to train or
// how often to save.
// BadInput if the recipe's system has settings that make no sense.
TrainingJob make_job(const PreparedRun& prepared);

// BadInput, with every reason and the nearest cure, if the job's system cannot train this model with so many workers.
// `file` is the recipe's.
void check_system(const TrainingJob& job, int workers, bool shares_memory, const std::string& file);

// The same before there is a job, and all of it at once: what make_job and check_system would refuse. Whether the parts
// fit is only looked at if there are no problems yet.
struct ExpectedWorkers {
  int count = 0;  // 0: nobody knows yet, so nothing is said that depends on them
  bool share_memory = true;
  PlanSpec plan = {};  // by which the model is split over some of them; `data` may be missing
};
void check_system(const PreparedRun& prepared, const ExpectedWorkers& world, Problems& problems);

// A problem if so many simulated workers do not fit into this machine's memory: each has weights of its own.
void check_simulated_workers(const PreparedRun& prepared, int workers, Problems& problems);

}  // namespace echelon
