#pragma once
// A first recipe for a data set: looks at the samples, chooses a network that fits them and settings that usually work,
// and writes them down with a comment on every line that one may want to change. Behind `echelon init`.

#include <string>

#include "data/open.h"

namespace echelon {

// The [data] table that `what` means: the name of a known set ("mnist"), or a file or directory whose format can be
// told by its name or content ("table.csv", "pictures/"), unless `kind` says it. BadInput if it is neither.
Options guess_data(Disk& disk, const std::string& what, const std::string& kind = "");

// The text of the recipe. Opens the data (BadInput if they are missing or broken) and reads some of them. Where there
// are no samples to test with, a tenth is kept back.
std::string initial_recipe(Disk& disk, Options data, const data::DataPlaces& places = data::usual_places());

}  // namespace echelon
