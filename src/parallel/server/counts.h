#pragma once
// What servers and workers count about their exchanges (ServerCounts, parallel/sync.h), put together.

#include "parallel/exchange.h"

namespace echelon::exchanges {

void add_counts(ServerCounts& sum, const ServerCounts& more);  // sums, maxima and minima, each as its meaning says
ServerCounts counts_of_all(const ExchangeParts& parts, const ServerCounts& own);  // of all ranks; collective

}  // namespace echelon::exchanges
