#pragma once
// Sums over slices that are on several ranks, rewritten before a graph is placed (plan/place.h), so that less is sent.
// Without it every part of a stage would get all addends. The bits are the same: each element is still added up in the
// fixed tree (base/tree.h).
//
// - A part adds up its own slices first, where they make up a node of the tree.
// - With more than two parts, each adds up a piece of the sum and hands it to the others: a reduce-scatter and an
//   all-gather. A part sends 2 (p - 1) / p of the sum's size, instead of p - 1 times all of it.
// - A sum that only another stage reads is made there (`pull_joins`): addends go straight to it, and are on their way
//   while the rank does something else.
//
// Pure functions.

#include <vector>

#include "graph/graph.h"
#include "plan/place.h"
#include "plan/stages.h"

namespace echelon {

// Whether a node adds up one addend of every slice, each on the part that has the slice, all of them split over all
// `parts` of their stages, with equally many slices in a subtree on each part. `stage_of`: by node.
bool sums_over_parts(const Graph& graph, const std::vector<int>& stage_of, const PartCounts& counts, const Node& node,
                     int parts);
// The sum over each part's own slices, added to the graph that `r` makes.
std::vector<Value> add_own_slices(Rewriter& r, const Node& node, int parts);

// `graph` as optimise() gives it.
Graph spread_sums(const Graph& graph, const StagePartition& partition, const PartCounts& counts);

// Moves nodes that only join what slices have computed to the one stage that reads them, if it has no more parts.
void pull_joins(const Graph& graph, const PartCounts& counts, std::vector<int>& stage_of);

}  // namespace echelon
