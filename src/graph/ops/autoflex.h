#pragma once
// Flexpoint's exponent management (Koester et al. 2017): a tensor is whole numbers of `bits` bits and one exponent,
// which is decided before the numbers are known. Of each tensor's peak, the largest magnitude in a step, a mean and a
// mean of squares are kept; twice the mean and three deviations is what the next step's numbers are expected to stay
// below. What does not is cut off, and seen: the next exponent is larger. Both means are a statistic of the model, so a
// checkpoint has them. In the first step, when nothing is known, the peak at hand decides.

#include "graph/graph.h"

namespace echelon::ops {

// x in that format; its gradient passes as it is. `name`: of the statistic, after the layer's: "conv1.input_peak".
Value autoflex(Graph& g, Value x, int bits, const char* name);

// The two halves, for a tensor that exists in backward only: the statistic; and x by it, with what the step
// contributes.
Value autoflex_peak(Graph& g, const char* name);
Value autoflex_by(Graph& g, Value x, Value peak, int bits);

// The bound that numbers are expected to stay below, from the two means; and then the step between two numbers.
float autoflex_bound(float mean, float mean_of_squares);
float autoflex_step(float bound, int bits);

}  // namespace echelon::ops
