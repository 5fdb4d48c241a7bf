#pragma once
// `echelon train RECIPE --find-lr`: the curve of the loss over the learning rate, and the rate it suggests.

#include <string>

#include "cli/training/train_rank.h"

namespace echelon::cli {

// On one worker, with as many cores as the flags say. Writes the curve's file and nothing else.
void find_lr(Disk& disk, const TrainSettings& settings, const PreparedRun& prepared, const TrainingJob& job);

}  // namespace echelon::cli
