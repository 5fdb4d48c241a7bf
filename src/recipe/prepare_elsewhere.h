#pragma once
// A run that is only planned here and will be trained on other machines.

#include "recipe/prepare.h"

namespace echelon {

// As prepare_run, but whether the run fits into this machine's memory is not asked.
PreparedRun prepare_for_elsewhere(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                                  Problems& problems);

}  // namespace echelon
