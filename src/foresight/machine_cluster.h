#pragma once
// This machine as a cluster file: the costs that were measured here for a recipe, in the words of
// recipe/cluster_file.h, so that a simulation runs on them too.

#include <string>

#include "foresight/costs/platform.h"
#include "recipe/prepare.h"

namespace echelon::foresight {

// The platform is this machine, with links in between or without. A core's speed is the recipe's arithmetic over what
// it and the update were measured to take with as many cores busy as the ranks keep busy.
std::string machine_cluster_toml(const PreparedRun& prepared, const Platform& platform);

}  // namespace echelon::foresight
