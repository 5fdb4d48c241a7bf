#pragma once
// Values that go from one rank's graph to another's. The place pass (plan/place.h) adds these after all other passes,
// so a value travels in the layout it has. The step's Communicator carries them.

#include "graph/graph.h"

namespace echelon::ops {

void send(Graph& g, Value x, int message);
Value receive(Graph& g, const Type& type, int message);

}  // namespace echelon::ops
