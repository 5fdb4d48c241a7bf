#pragma once
// A plan in the words of Mesh-TensorFlow (Shazeer et al., 2018): ranks form a mesh, dimensions of tensors have names,
// and a layout lays some of them along dimensions of the mesh.
//
//   mesh = [2, 4]                                 # called rows and columns; a third one is called layers
//   layout = ["batch:rows", "heads:columns"]
//
// batch is data parallelism; heads, hidden, vocabulary, channels, units, experts and height split layers (those layers
// whose slices are of that dimension, the others not at all); layers is the pipeline. A layout that cannot be carried
// out is refused with the reason. Pure functions.

#include "base/options.h"

namespace echelon {

struct PlanSpec;

const std::vector<std::string>& mesh_dimensions();  // of tensors, that a layout may name

// Reads `mesh` and `layout`, if they are there, into the plan's degrees. Problems are added to the reader's.
void read_mesh(OptionReader& table, PlanSpec& plan);

}  // namespace echelon
