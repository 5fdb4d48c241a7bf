#pragma once
// `echelon train --elastic`: workers that are lost do not end a run. The launcher keeps the run's state
// (world/os/kept_state.h); when a worker's process is killed, the others end, and a new generation of workers begins
// with that state: as many as before, or one less. Workers of several machines: cli/training/elastic_nodes.h.

#include <functional>
#include <memory>
#include <optional>

#include "cli/training/train_rank.h"
#include "run/job.h"

namespace echelon::cli {

Elastic read_elastic(const std::string& text);  // what --elastic was given; "": no. BadInput if it is none

Keep read_keep(const std::string& text);  // what --keep was given; BadInput if it is none

// A recipe that has been prepared, with its job: what the ranks of a generation train.
struct ReadyJob {
  explicit ReadyJob(PreparedRun run) : prepared(std::move(run)), job(make_job(prepared)) {}
  PreparedRun prepared;
  TrainingJob job;  // of `prepared`
};
// Prepares the job of these settings; BadInput if there is none.
using PrepareJob = std::function<std::shared_ptr<const ReadyJob>(const TrainSettings&)>;
// What of the plan and the system cannot be with so many workers.
void check_workers(const ReadyJob& ready, const TrainSettings& settings, int workers, Problems& problems);

// "rank 1 was lost (killed by signal 9, Killed)"
struct WorkerLoss {
  int rank, signal;
  std::string at_its_end = {};  // what it did then
};
std::string in_words(const std::vector<WorkerLoss>& losses);
std::string workers_in_words(int workers);

// BadInput if the job's workers cannot check each other, and are to (--check-replicas). `workers`: 0 if nobody knows
// yet.
void expect_comparable(const TrainSettings& settings, const ReadyJob& ready, int workers);
// What the ranks have asked the launcher for because they did not agree (run/training/training_check.cpp), if that is
// it: why, for people. `doubts`: how often in a row. Failure if that is too often. Who is to be left out is not, by
// itself.
struct Doubt {
  std::string because;
  int left_out = -1;  // a rank
};
std::optional<Doubt> take_doubt(const std::string& wish, TrainSettings& settings, int& doubts);

// Whether a state that `before` kept is one that `now` can go on from as it is; else it has its weights.
bool keeps_layout(const TrainingJob& before, int workers_before, const TrainingJob& now, int workers_now);

// Trains on the world of the settings until the run has ended by itself, whatever happens to the workers. Throws as
// run_on_world does for other failures, and for a loss when many generations in a row have come no further.
// BadInput if this process does not start all the workers itself.
void run_elastic(const TrainSettings& settings, const LaunchOptions& options, std::shared_ptr<const ReadyJob> ready,
                 const PrepareJob& prepare);

}  // namespace echelon::cli
