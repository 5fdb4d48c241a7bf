#pragma once
// What the slices of each layer are (model.slices): which of its extents is cut, read off a sliced training graph. Pure
// functions.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon {

// How the recipe cuts a layer.
struct LayerSplit {
  std::string split;      // "out", "in", "heads", ...: one of split_names(); empty: it has no slices of its own
  std::string dimension;  // of its tensors that is spread over the slices, as a mesh names it (plan/mesh.h)
  friend bool operator==(const LayerSplit&, const LayerSplit&) = default;
};

// "out", "in": columns and rows of a matrix, by its outputs or inputs; heads, vocabulary, channels, units, experts;
// "rows": strips of an image; "grid": a matrix in both dimensions; "batch"; "none".
const std::vector<std::string>& split_names();

// By layer of a sliced training graph, as optimise() gives it.
std::map<std::string, LayerSplit> layer_splits(const Graph& graph);

}  // namespace echelon
