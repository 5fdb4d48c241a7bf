#pragma once
// In which order parameters are best transferred to a worker whose forward pass waits for them, by measured times
// (TicTac's TAC). Of two transfers that one goes first which lets more computing begin while the other is on its way.

#include <functional>
#include <vector>

#include "parallel/exchange.h"

namespace echelon::exchanges {

// The ranges that the nodes read, each once. `transfer`: the seconds that a range takes on the wire.
std::vector<Range> order_by_times(const std::vector<ForwardNode>& nodes, const std::function<double(Range)>& transfer);

// The same with times that are measured now, by rank 0 for all. Collective.
std::vector<Range> measured_order(const ExchangeParts& parts);

}  // namespace echelon::exchanges
