#pragma once
// HALP (De Sa et al. 2018): SVRG whose weights are an offset of few bits from a centre that is known in full. The parts
// of a graph that runs the network twice, at the weights and at the centre:
//
//   at_offset   w as the network sees it: centre + the offset w - centre, in few bits
//   at_centre   the centre; its gradient g' gathers the full gradient, and takes g's variance away: g - g' + full
//
// A period of steps: in the first the centre moves to w, in the next `gather` the full gradient at the centre is
// gathered (weights rest), in the others the weights move. The offset has 2^bits - 1 steps between -|full| / mu and
// |full| / mu: as training converges, the same bits cover a smaller range. |full| is a parameter's own norm here (the
// paper takes that of all of them).
//
// Centre and full gradient are statistics of the model (rate 1), so that every copy and every checkpoint has them.

#include "graph/graph.h"

namespace echelon::ops {

struct BitCentring {
  int bits = 8;
  float mu = 0.05f;                         // too large a one leaves weights no room to move
  std::uint32_t gather = 50, period = 250;  // in steps; period > gather + 1
};

// What belongs to one parameter, all of its shape.
struct Centred {
  Value weights, centre, full;
};

Value at_offset(Graph& g, const Centred& c, const BitCentring& how);
// Also says what the step contributes to the centre and, once the graph is differentiated, to the full gradient.
Value at_centre(Graph& g, const Centred& c, const BitCentring& how);

}  // namespace echelon::ops
