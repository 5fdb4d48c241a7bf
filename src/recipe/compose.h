#pragma once
// A recipe and the system it is trained with, put together (recipe/load.h says how they lie on each other).

#include <string>
#include <vector>

#include "recipe/load.h"

namespace echelon {

// Puts the system that `flag`, an override or the recipe names under and over `loaded.tree`, and returns its name; ""
// if there is none or if the recipe is composed already. Overrides are looked at but not applied. What is wrong with
// the system, its name included, is added to `problems`.
std::string compose(Disk& disk, const std::vector<std::string>& overrides, const std::string& flag,
                    const SystemPlaces& places, LoadedOptions& loaded, Problems& problems);

}  // namespace echelon
