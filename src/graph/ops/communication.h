#pragma once
// Values that go from one rank's graph to another's. The place pass (plan/place.h) adds these after all other passes,
// so a value travels in the layout it has. The step's Communicator carries them.

#include "graph/graph.h"

namespace echelon::ops {

void send(Graph& g, Value x, int message);
Value receive(Graph& g, const Type& type, int message);

// A parameter of which every rank has a part, by its number in the graph: its memory, which is filled from now on, and
// the parameter once it is complete.
Value start_gather(Graph& g, const Type& type, int parameter);
Value finish_gather(Graph& g, Value started, int parameter);
// A micro-batch's gradient of a parameter goes to the ranks that sum it up.
void contribute(Graph& g, Value gradient, int parameter);
// The message that an op sends or receives; -1: it is another op.
int message_of(const Op& op);
// The parameter whose gradient an op contributes; -1: it is another op.
int contributes_to(const Op& op);

}  // namespace echelon::ops
