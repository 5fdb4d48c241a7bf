#pragma once
// [exchange] with graph = "file": the list of edges is a file beside the recipe's own. Its text becomes a part of the
// recipe, as `edges` in the place of `file`, so that a run's folder holds the graph it was trained on, and is resumed
// on that one or not at all, whatever has become of the file.

#include "base/options.h"
#include "world/os/disk.h"

namespace echelon {

inline constexpr std::size_t most_edges_bytes = 256 << 10;  // a recipe must still be one that can be read

// Of an [exchange] table. A file that cannot be read is a problem. Nothing happens where no file is named.
void take_in_graph(Disk& disk, Options& exchange, Problems& problems);

}  // namespace echelon
