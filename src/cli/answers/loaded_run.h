#pragma once
// A trained model as a run folder holds it: recipe, data, network and the weights of one checkpoint. What `eval`,
// `predict` and `sample` begin with.

#include <memory>
#include <string>

#include "graph/program.h"
#include "recipe/prepare.h"
#include "tensor/buffer.h"
#include "track/checkpoint.h"
#include "track/run.h"

namespace echelon::cli {

struct LoadedRun {
  std::unique_ptr<Disk> disk;  // for what is in the folder (world/os/folder_disk.h)
  RunFolder folder;
  PreparedRun prepared;
  ParameterTable table;
  Buffer parameters;
  Manifest manifest;  // of the checkpoint; its hash of the weights has been verified
  std::string which;  // it is, in words: "step 120, the best (best val_f1, and of equals the lowest loss)"
};

// `run` is a run's folder, its name in runs/, or a registered version of a model, "digits@2" or "digits@production"
// (which says the step itself); `which` is "best", "last" or a step. BadInput for anything that is not
// there or not whole, and for a recipe in the folder that is not the one the weights were trained with. What was passed
// over on the way (damaged checkpoints) and training data that have changed since are told on stderr.
// `average`: the average of the weights that optim.ema kept, instead of the last step's.
// `data`: `described` does without the data where the folder says what the samples are, which all but old ones do.
enum class RunData { opened, described };
LoadedRun load_run(Disk& disk, const std::string& run, const std::string& which, bool average = false,
                   RunData data = RunData::opened);

// One for each class: its name, or its number.
std::vector<std::string> class_names_of(const data::DatasetInfo& info);

}  // namespace echelon::cli
