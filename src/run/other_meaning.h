#pragma once
// Where weights that a run begins with came from, and what their inputs and outputs meant there: a network has as many
// of them for other columns of a table, or other classes, and then loads weights that stand for something else.

#include <optional>
#include <string>
#include <vector>

#include "recipe/prepare.h"
#include "track/run.h"
#include "world/os/disk.h"

namespace echelon {

// The run in whose folder, or a few folders below which, the file of weights lies.
std::optional<RunFolder> run_of_weights(Disk& disk, std::string file);

// A sentence for each thing that means something else here. Nothing where the recipe says what is loaded, and nothing
// about a source whose folder does not say what its samples were.
std::vector<std::string> notes_on_other_meaning(Disk& disk, const PreparedRun& prepared, const std::string& file);

}  // namespace echelon
