#pragma once
// The encoder of a table in a run's folder: written when the run begins, and used instead of another by everybody who
// opens the run's data later, whatever the file holds by then.

#include <string>
#include <vector>

#include "data/dataset.h"
#include "track/run.h"

namespace echelon::cli {

// Writes it, unless it is there already or the data are no table.
void keep_encoder(Disk& disk, const RunFolder& folder, const data::DatasetInfo& train);

// What to change in the run's recipe so that its data are encoded as they were; nothing if there is no encoder.
std::vector<std::string> with_kept_encoder(Disk& disk, const RunFolder& folder);

}  // namespace echelon::cli
