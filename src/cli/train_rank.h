#pragma once
// What one rank of `echelon train` does, from the first look at its world to the summary that rank 0 prints.

#include <string>
#include <vector>

#include "cli/world_flags.h"
#include "recipe/prepare.h"
#include "run/training.h"
#include "world/world.h"

namespace echelon::cli {

enum class Resume { no, yes, automatic };  // automatic: go on if there is a run, else start

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
  bool find_lr = false;
  std::string svg;  // of find_lr; empty: after the recipe

  std::string command() const;  // that does the same
};

// `prepared` may be shared by ranks that are threads. The job's plan is checked against the world.
void train_rank(World& world, const TrainSettings& settings, const PreparedRun& prepared, TrainingJob job);

}  // namespace echelon::cli
