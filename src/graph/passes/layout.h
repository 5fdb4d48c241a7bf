#pragma once
// Settles how images lie in memory: each op is asked which layouts it takes and gives (Op::layouts), in running order,
// and a relayout node is put where a value arrives in another one. Convolutions decide, everything between them
// follows, so a blocked layout survives from the first convolution to the last.

#include "graph/graph.h"

namespace echelon {

Graph choose_layouts(const Graph& graph);

}  // namespace echelon
