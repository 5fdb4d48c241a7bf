#pragma once
// The rows that the table in parallel/exchanges.cpp lists: one for each exchange, in the exchange's own file.

#include "parallel/exchange.h"

namespace echelon::exchanges {

ExchangePart all_reduce();
ExchangePart owner_shard();
ExchangePart factors();
ExchangePart shared_memory();
ExchangePart learners();
ExchangePart server();
ExchangePart neighbour();
ExchangePart random_peer();
ExchangePart partial();
ExchangePart nested();
ExchangePart elastic_tree();
ExchangePart scheduled();
ExchangePart all_to_all();
ExchangePart coordinator();

}  // namespace echelon::exchanges
