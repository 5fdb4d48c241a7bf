#pragma once
// Cuts a network into slices: a layer becomes equal parts that could be computed in different places, each with its own
// part of the weights (tensor parallelism). What every op does is in its slice_rule (graph/slicing.h); this pass
// carries the cuts from op to op, joins where an op needs the whole (a concat), adds up where the parts are addends (a
// tree_sum), and makes the parameters.
//
// Slices are part of the result, like logical shards: the numbers are those of the sliced graph whoever computes which
// slice. "up.weight" becomes "up.slice0.weight", "up.slice1.weight", ...; each part starts from a random stream of its
// own, with the fans of the whole layer. Take the forward graph, before differentiate(). One slice: the graph itself.

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace echelon {

struct SlicedParameter {
  std::string name, whole;  // "up.slice1.weight", "up.weight"
  Shape shape;              // of the whole
  Cut cut;
  int slice = 0;
};

// A layer whose number of channels, heads, ... the slices do not divide.
struct Indivisible {
  std::string layer;
  std::int64_t units = 0;
  std::string unit;
};

// How parameters are cut, by the name of the whole.
using Cuts = std::map<std::string, Cut>;

struct Sliced {
  Graph graph;
  Cuts cuts;                                // of all parameters
  std::vector<SlicedParameter> parameters;  // of those that were cut
  std::vector<Indivisible> indivisible;     // not empty: the graph is not to be used
};

inline constexpr int most_slices = 64;

// In how many parts, whether convolutions and pooling are cut into strips, of rows or of columns, with whole weights,
// instead of by channels, and whether matrices are cut in both dimensions. One number means channels, and matrices by
// outputs or inputs.
//
// `overlap` (Muller and Gunzinger 1994): a slice does not borrow rows at the edge of its strip after every layer, but
// computes them itself, from as many more rows of the first layer as the last one needs in the end. Neighbours compute
// the same rows twice, and nothing travels between them until something needs the whole image, or its own strip alone
// (a batch norm, whose statistics count every row once).
struct Slicing {
  Slicing(int slices, bool strips = false, bool columns = false, bool grid = false,  // NOLINT: meant to convert
          bool overlap = false)
      : slices(slices), strips(strips), columns(columns), grid(grid), overlap(overlap) {}
  int slices;
  bool strips, columns, grid, overlap;

  // Of a grid of slices that is as square as their number allows: no fewer than it has rows.
  int grid_columns() const;
};

// Several graphs of one model share its parameters: `decided` says how those are cut that were met in another graph.
Sliced slice(const Graph& forward, Slicing how, const Cuts& decided = {});

}  // namespace echelon
