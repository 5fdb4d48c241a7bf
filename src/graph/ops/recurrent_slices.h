#pragma once
// A recurrent layer in slices: each has some of the units. Step by step, every slice computes its units from the whole
// state before, and the parts of the state are joined for the next step.

#include <vector>

#include "graph/ops/recurrent.h"

namespace echelon::ops {

// in[slice]: x (whole), w_ih, w_hh, b_ih, b_hh (the slice's units of each gate), then h0 (and c0), the slice's, if the
// sequence does not start from zero. Returns y, h_last (and c_last), cut by units, for each slice.
std::vector<std::vector<Value>> recurrent_in_slices(Graph& g, Cell cell, const std::vector<std::vector<Value>>& in);

}  // namespace echelon::ops
