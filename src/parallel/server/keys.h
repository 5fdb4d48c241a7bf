#pragma once
// How the model is cut into keys, and where everything is: which server has which key, where a worker's pushes go, and
// who writes to a server. All ranks compute the same from the settings, the model and the hosts.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/server/messages.h"
#include "parallel/server/settings.h"

namespace echelon::exchanges {

struct Key {  // a slice of the model: the unit of messages
  Range range;
  Rank server = 0;
};

struct KeyQuery {
  int workers = 1;
  std::size_t floats = 0;
  std::vector<std::size_t> tensors;  // where each begins
  Order order;
};

// The ranges of parameters that owners have: whole parameters, as even as these allow; some may be empty. `offsets`
// ascend, from 0.
std::vector<Range> owners_of_parameters(std::span<const std::size_t> offsets, std::size_t floats, int owners);

// The server of each segment on a hashing ring (Li et al.'s Parameter Server): servers have `places` each on a circle,
// and a segment belongs to the next one. A further server takes its segments from the others, who keep the rest.
std::vector<int> ring_servers(int servers, int places, int segments);

int server_count(const ServerSettings& settings, int workers);
Rank rank_of_server(const ServerSettings& settings, int server, int workers);  // the first of its chain
std::vector<Key> cut_into_keys(const ServerSettings& settings, const KeyQuery& c);

// The same for a run, as one rank sees it.
struct ServerMap {
  std::vector<Key> keys;
  std::vector<int> sites;         // of every rank; empty: there is one
  std::vector<Address> push_to;   // by key: where this rank's worker pushes, if no server of a chain is lost
  std::vector<Address> writers;   // who push to this rank's servers, and where they are answered
  double bandwidth = 1e15;        // bytes a second of a worker's link, where the order needs to know it
  std::vector<Range> read_order;  // in which forward reads the parameters, or wants them by measured times

  Range keys_of(Rank server) const;  // numbers of keys; they lie side by side
  // These keys, counted from the first of them, in the order in which forward reads them: the same on all ranks,
  // because it depends on the graph alone.
  std::vector<std::size_t> reading_order(Range keys) const;
};
ServerMap make_server_map(const ServerSettings& settings, const ExchangeParts& parts);

inline bool overlaps(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace echelon::exchanges
