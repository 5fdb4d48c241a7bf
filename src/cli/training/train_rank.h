#pragma once
// What one rank of `echelon train` does, from the first look at its world to the summary that rank 0 prints.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/training/world_flags.h"
#include "data/open.h"
#include "recipe/prepare.h"
#include "run/training/training.h"
#include "world/world.h"

namespace echelon::cli {

struct PredictedRun;

enum class Elastic { no, replace, shrink };  // what --elastic does about a lost worker (cli/training/elastic.h)
enum class Resume { no, yes, automatic };    // automatic: go on if there is a run, else start

struct TrainSettings {
  std::string recipe;
  std::string system;  // a name or a path; empty: what the recipe says
  std::string plan;    // key=value,... or a path; empty: what the recipe says
  std::string memory;  // that a rank may allocate: "1.2GiB"; empty: no limit
  std::vector<std::string> overrides;
  WorldFlags world;
  std::string run, root = "runs";
  Resume resume = Resume::no;
  bool restart = false, json = false, trace = false;
  Elastic elastic = Elastic::no;
  std::string replay = {};                 // the journal whose changes are made again; empty: none
  std::vector<JournalLine> replayed = {};  // its lines, or what `stages` says
  std::string stages = {};                 // what changes when (cli/training/stages.h); empty: nothing
  Keep keep = Keep::usual;                 // what of the state is kept, of an elastic run
  int max_restarts = -1;                   // generations after lost workers, of an elastic run; -1: any number
  std::int64_t check_replicas = 0;         // steps between two comparisons of the ranks' weights; 0: none
  std::vector<BitFlip> flips = {};         // experiments
  bool find_lr = false;
  std::string svg;  // of find_lr; empty: after the recipe

  // For a program that trains without a terminal (python/).
  std::optional<Options> tree = {};                     // the recipe itself; `recipe` is then only its name
  data::DataPlaces places = data::usual_places();       // which may hold samples
  bool quiet = false;                                   // print nothing
  RunListener* listener = nullptr;                      // of rank 0
  std::function<void(const std::string&)> result = {};  // of rank 0: what --json prints

  // Of an elastic run, for the ranks of one generation.
  KeptState* kept = nullptr;  // null: the run is not elastic
  KeepingRanks keeping = {};  // those that share `kept`
  std::int64_t generation = 1;
  bool goes_on = false;       // from the kept state of rank 0's node
  bool weights_only = false;  // of which only the weights fit: of another system, or another number of its workers
  std::string servers = {};   // that were asked for while it goes on; empty: what the recipe says
  std::map<std::string, double> tried = {};  // seconds of a step with so many servers
  bool chosen = false;                       // this generation has the quickest of these
  std::string change = {};                   // why this generation follows another one
  std::string doubt = {};  // what the ranks of the last one did not agree on (run/health/replica_check.h)

  std::shared_ptr<const PredictedRun> predicted = {};  // cli/foresight/run_prediction.h; null: nothing is expected

  std::string command() const;  // that does the same
};

// What `echelon train` does for one recipe, from reading it to the end of the run. `own_metrics` as in TrainingJob.
void train_recipe(const TrainSettings& settings, std::function<MetricValues(const EvaluatedModel&)> own_metrics = {});

// The recipe of these settings, prepared. Problems are added.
PreparedRun prepare_settings(Disk& disk, const TrainSettings& settings, Problems& problems);

// `prepared` may be shared by ranks that are threads. The job's plan is checked against the world.
void train_rank(World& world, const TrainSettings& settings, const PreparedRun& prepared, TrainingJob job);

}  // namespace echelon::cli
