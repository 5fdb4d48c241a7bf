#pragma once
// The parts of preparing a run, each with what it refuses. Private to the files that prepare a run.

#include <functional>
#include <string>

#include "recipe/prepare.h"

namespace echelon {

// The samples of a split before any transform.
using OpenPlain = std::function<data::DatasetPtr(const data::DataSpec& spec, const std::string& split)>;

// The data sets of the recipe's [data]; those that cannot be opened stay null.
void open_data(const OpenPlain& open_plain, PreparedRun& run, Problems& problems, const data::DataPlaces& places);

// The model for these data, with the recipe's [loss]; without data its settings are only checked.
void make_model(PreparedRun& run, Problems& problems);

// The metrics that the recipe names, and the one that decides what is best.
void choose_metrics(PreparedRun& run, OptionReader& train, Problems& problems);

// Whether a step fits into this machine's memory, before anything is allocated. What no number of workers or cores
// would make fit is a problem; what may not fit on this machine alone is a note.
void check_memory(PreparedRun& run, OptionReader& train, Problems& problems);

}  // namespace echelon
