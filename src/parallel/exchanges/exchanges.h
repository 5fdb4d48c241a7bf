#pragma once
// The makers that the table in parallel/exchanges.cpp lists. Each reads its own settings.

#include "parallel/exchange.h"

namespace echelon::exchanges {

using Maker = std::unique_ptr<const ExchangeKind> (*)(OptionReader&);

std::unique_ptr<const ExchangeKind> all_reduce(OptionReader&);
std::unique_ptr<const ExchangeKind> owner_shard(OptionReader&);
std::unique_ptr<const ExchangeKind> factors(OptionReader&);
std::unique_ptr<const ExchangeKind> shared_memory(OptionReader&);
std::unique_ptr<const ExchangeKind> learners(OptionReader&);
std::unique_ptr<const ExchangeKind> server(OptionReader&);
std::unique_ptr<const ExchangeKind> neighbour(OptionReader&);
std::unique_ptr<const ExchangeKind> random_peer(OptionReader&);
std::unique_ptr<const ExchangeKind> partial(OptionReader&);
std::unique_ptr<const ExchangeKind> nested(OptionReader&);
std::unique_ptr<const ExchangeKind> elastic_tree(OptionReader&);

}  // namespace echelon::exchanges
