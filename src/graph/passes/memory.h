#pragma once
// Where every value of a graph lives during a step. Values whose lives do not overlap share memory; an op may write
// over an input that dies with it; views cost nothing. The figure is exact: an executor uses this many bytes and no
// more.

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace echelon {

struct Placement {
  enum class Home { nowhere, arena, kept, parameter, contribution };
  Home home = Home::nowhere;
  std::size_t offset = 0;  // into the arena or the kept memory; for the others, the parameter's index
};

struct MemoryPlan {
  std::vector<Placement> values;     // by value id
  std::vector<std::size_t> scratch;  // by node: offset into the arena
  std::size_t arena_bytes = 0, kept_bytes = 0;
};

// A graph may be run in parts, with other graphs on the same arena in between. `parts` are the nodes at which a part
// begins, besides the first. Values that are alive from one part to another are then kept in memory of their own.
MemoryPlan plan_memory(const Graph& graph, bool reuse = true, std::span<const std::size_t> parts = {});

}  // namespace echelon
