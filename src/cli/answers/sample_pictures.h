#pragma once
// Pictures from a trained generator or autoencoder, as one PNG.

#include <string>

#include "cli/answers/loaded_run.h"

namespace echelon::cli {

// A generator: a sheet of new pictures. An autoencoder: three rows of test pictures, as they are, with noise on them
// (the recipe's model.noise), and as the network restores them. Written to `path` as a whole.
void sample_pictures(Disk& disk, LoadedRun& run, const std::string& path, std::uint64_t seed);

}  // namespace echelon::cli
