#pragma once
// A checkpoint made again: the run's recipe, started from the checkpoint before it, gives the same bits.

#include "registry/archive.h"
#include "track/run.h"

namespace echelon::cli {

// Trains in a folder of its own below the archive (removed afterwards), with the recipe of the run and in the current
// directory, until the checkpoint is there. None: training ends without it. BadInput if training is refused, Failure if
// a signal stops it.
Retrain retrain_of(const RunFolder& folder);

}  // namespace echelon::cli
