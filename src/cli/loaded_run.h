#pragma once
// A trained model as a run folder holds it: recipe, data, network and the weights of one checkpoint. What `eval`,
// `predict` and `sample` begin with.

#include <string>

#include "graph/program.h"
#include "recipe/prepare.h"
#include "tensor/buffer.h"
#include "track/checkpoint.h"
#include "track/run.h"

namespace echelon::cli {

struct LoadedRun {
  RunFolder folder;
  PreparedRun prepared;
  ParameterTable table;
  Buffer parameters;
  Manifest manifest;  // of the checkpoint
  std::string which;  // it is, in words: "step 120, the best (best val_f1, and of equals the lowest loss)"
};

// `run` is a run's folder or its name in runs/; `which` is "best", "last" or a step. BadInput for anything that is not
// there or not whole. `disk` must outlive the result.
// `average`: the average of the weights that optim.ema kept, instead of the last step's.
LoadedRun load_run(Disk& disk, const std::string& run, const std::string& which, bool average = false);

// One for each class: its name, or its number.
std::vector<std::string> class_names_of(const data::DatasetInfo& info);

}  // namespace echelon::cli
