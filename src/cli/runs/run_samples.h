#pragma once
// What the samples of a run are, in its folder: fields, classes and targets (samples.json), the encoder of a table
// (table.json), the vocabulary of a text (tokens.txt). Written when the run begins. The encoder is used by everybody
// who opens the run's data later, whatever the file holds by then; with all of them a network can be asked without its
// data.

#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "track/run.h"

namespace echelon::cli {

// Writes those that are not there yet. `plain`: the training samples before any transform.
void keep_samples(Disk& disk, const RunFolder& folder, const data::DatasetInfo& plain);

// What keep_samples wrote, or nothing in a folder without it. BadInput if a file is damaged.
std::optional<data::DatasetInfo> kept_samples(Disk& disk, const RunFolder& folder);

// What to change in the run's recipe so that its data are encoded as they were; nothing if there is no encoder.
std::vector<std::string> with_kept_encoder(Disk& disk, const RunFolder& folder);

}  // namespace echelon::cli
