#pragma once
// Errors of few bits: forward hands its input on, and the gradient that comes back through it is rounded. Put behind a
// layer, so that both of its gradients, of weights and input, are computed from rounded errors. For training graphs.

#include "graph/graph.h"

namespace echelon::ops {

// Whole numbers of `bits` bits, `fraction` of them behind the point, rounded by chance (Gupta et al. 2015).
Value fixed_point_errors(Graph& g, Value y, int bits, int fraction);

// DoReFa-Net's: `bits` bits between plus and minus the largest of the sample, after noise of half a step either way,
// which is rounding by chance.
Value dorefa_errors(Graph& g, Value y, int bits);

// Whole numbers with one exponent, which is predicted (graph/ops/autoflex.h).
Value autoflex_errors(Graph& g, Value y, int bits);

}  // namespace echelon::ops
