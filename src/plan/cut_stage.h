#pragma once
// What one stage of a placed graph (plan/place.h) runs, or a part of it, as a graph of its own: its nodes in the order
// in which they run, pass by pass, with a `send` or a `receive` for every message that the placement has here. Pure
// functions.

#include <array>
#include <vector>

#include "plan/place.h"

namespace echelon {

// What one stage, or a part of it, runs: nodes by pass, in the order in which they run.
struct StageGraph {
  Graph graph;
  std::array<std::size_t, 4> begin{};  // where each pass begins, and the end
  // Where each segment of a pass begins (StageSegments); empty: the pass is one.
  std::array<std::vector<std::size_t>, 3> segments = {};
};

// `splits_weights`: what no other stage waits for becomes the pass `weights`. `segments`: by stage, if passes are cut;
// what a graph has more of belongs to the last one.
StageGraph cut_stage(const Graph& graph, const PlacedGraph& placed, int stage, int part, bool splits_weights,
                     const StageSegments& segments = {});

}  // namespace echelon
