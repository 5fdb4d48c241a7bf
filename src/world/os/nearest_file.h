#pragma once
// For a path at which there is nothing.

#include <string>

#include "world/os/disk.h"

namespace echelon {

// "; did you mean 'data/houses.csv'?" if something in the same folder has nearly that name, else nothing.
std::string did_you_mean_file(Disk& disk, const std::string& path);

}  // namespace echelon
