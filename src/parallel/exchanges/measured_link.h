#pragma once
// What a worker's link carries while all others use theirs, measured.

#include "parallel/exchange.h"

namespace echelon::exchanges {

struct MeasuredLink {
  double bandwidth = 0;  // bytes a second that a worker may send: of the slowest worker
  double latency = 0;    // seconds of a message without content
};

// The same answer on all ranks. Collective; for several workers.
MeasuredLink measure_link(const ExchangeParts& parts);

}  // namespace echelon::exchanges
