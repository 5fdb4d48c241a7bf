#pragma once
// What parameter servers agree on beforehand: how the model is cut into keys, which server has which, and what the
// messages between workers and servers mean.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/exchanges/overlay.h"
#include "parallel/server/filter.h"

namespace echelon::exchanges {

struct ServerSettings {
  int servers = 1;         // 0: one on every worker
  bool planned = true;     // all that a server has of the model travels in one message; else a message for each tensor
  Overlay overlay;         // on the way to a server
  FilterSettings filters;  // what is left out of pushes
  bool factors = false;    // fully connected layers go as factors (server_factors.h); servers have whole parameters
  int replicas = 1;        // of every server, in a chain (server_chain.h)
  struct Death {           // an experiment: the state of this server's member is lost ...
    int server = 0, position = 0;
    std::int64_t at = 0;  // ... when it gets its contributions after so many updates
  };
  std::vector<Death> deaths;
};

// In rounds a message's `clock` is the number of the round; else it counts steps.
enum MessageType : std::uint16_t {
  push,  // contribution. In rounds: number is its share, second the learning rate, as bits of a double.
         // Else: number is the learning rate times its share (of weights: the share), second the version that it was
         // computed from, with the worker's own pushes since.
  push_answer,  // the same, and an answer is wanted: push_answer's `clock` + 1 less the staleness must be in it
  pull,         // an answer is wanted, as it is
  warm,         // an answer is wanted that has seen `clock` updates
  answer,       // clock: how many steps of everybody it has seen, or the round that is open; second: its version;
                // number: how many of the reader's own pushes are in it
  hand_in,      // round `clock` closes: send what you have
  flush,        // answered when everything that came before it has been merged; no push follows in this run
  flushed,
  await,        // no contribution for this key now, but the answer is wanted that push_answer would get
  lost,         // to a worker: this server has lost its state; clock: all of its chain that have (LostMembers). From a
                // worker to the first of the chain that is left: the same
  site_change,  // of weights, from the server of another site (server_sites.h); clock: how far that site is
};

struct Address {
  Rank rank = 0;
  int tag = 0;
};

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

int server_count(const ServerSettings& settings, int workers);
Rank rank_of_server(const ServerSettings& settings, int server, int workers);  // the first of its chain
std::vector<Key> cut_into_keys(const ServerSettings& settings, const KeyQuery& c);
std::vector<Key> cut_into_keys(const ServerSettings& settings, const ExchangeParts& parts);

}  // namespace echelon::exchanges
