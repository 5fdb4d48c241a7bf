#pragma once
// Samples with their truth that a run's own data do not have: what `eval --data` judges a network by.

#include "cli/answers/loaded_run.h"

namespace echelon::cli {

// A file or folder of the kind that the run was trained on, or the name of a known set: its test samples, where there
// are such, else all. They are encoded, cut into tokens and normalised as the run's own were. BadInput if they do not
// fit.
data::DatasetPtr open_other_samples(Disk& disk, const LoadedRun& run, const std::string& what);

}  // namespace echelon::cli
