#pragma once
// A matrix that is cut in both dimensions over a grid of slices, r rows and c columns (2-D tensor parallelism after
// Cannon and SUMMA: van de Geijn and Watts, 1997). Slice (i, j) has block (i, j) of the weights w[out, in]:
//
//   x_j = the j-th of c pieces of the features, put together from the slices that have them
//   p_ij = x_j w_ij^T,  of which slice (i, k) gets the k-th of c pieces of the outputs
//   y_(i, k) = p_i1 + ... + p_ic in the fixed tree, for that piece, and the bias
//
// Features and outputs are in as many equal parts as there are slices, in their order, so two such layers in a row need
// nothing in between. With n slices a slice receives about (r + c) / n of an activation, not all of it.

#include "graph/graph.h"

namespace echelon::ops {

// How x[.., in], w[out, in] and perhaps b[out] of a linear layer are cut; none: the grid does not fit the matrix.
std::optional<SliceRule> grid_rule(const SliceQuestion& q);

}  // namespace echelon::ops
