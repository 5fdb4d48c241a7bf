#pragma once
// The folder that `echelon train` works in: a new one, or that of a run that goes on. What a folder says is what made
// its weights: a run goes on only with a recipe under which all its steps would have been the same, and the folder's
// recipe then becomes that one.

#include <functional>
#include <memory>
#include <string>

#include "cli/training/train_rank.h"
#include "track/run.h"
#include "world/os/folder_lock.h"

namespace echelon::cli {

struct TrainFolder {
  RunFolder folder;
  bool resumes = false;  // it was there before
  std::unique_ptr<FolderLock> lock = nullptr;
};

// The weights that the recipe begins with (model.init); null if it names none, or if the run goes on from a checkpoint
// of its own: then the source need not be there any more. Problems are added.
std::shared_ptr<const InitialWeights> initial_weights(Disk& disk, const TrainSettings& settings, PreparedRun& prepared,
                                                      Problems& problems);

// Makes the folder or opens the one to go on with, and keeps other processes away. BadInput if it cannot be made,
// written or found, or if another process trains in it; then nothing has changed. On rank 0.
TrainFolder open_train_folder(Disk& disk, const TrainSettings& settings, const PreparedRun& prepared);

// Goes on from the folder's newest good checkpoint; false if there is none. Collective. BadInput, with every setting
// that differs and a command that works, if the folder's steps were made by another recipe. Rank 0 (`first`) writes the
// recipe as it is from now on, and says so through `note`.
bool resume_training(Training& training, Disk& disk, const RunFolder& folder, const TrainSettings& settings,
                     const PreparedRun& prepared, const TrainingJob& job, bool first,
                     const std::function<void(const std::string&)>& note);

// The folder's recipe is this one from here on: a run that goes on was asked for another system.
void take_recipe(Disk& disk, const RunFolder& folder, const PreparedRun& prepared,
                 const std::function<void(const std::string&)>& note);

}  // namespace echelon::cli
