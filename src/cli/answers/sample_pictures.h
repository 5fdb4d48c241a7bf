#pragma once
// Pictures from a trained generator or autoencoder, as one PNG.

#include <cstddef>
#include <vector>

#include "cli/answers/loaded_run.h"

namespace echelon::cli {

// A generator: a sheet of new pictures. An autoencoder: three rows of test pictures, as they are, with noise on them
// (the recipe's model.noise), and as the network restores them. Returns the PNG's bytes.
std::vector<std::byte> sample_pictures(Disk& disk, LoadedRun& run, std::uint64_t seed);

}  // namespace echelon::cli
