#pragma once
// The settings of exchange server, and how a recipe's [exchange] table is read into them.

#include <cstdint>
#include <vector>

#include "base/options.h"
#include "parallel/exchange.h"
#include "parallel/exchanges/overlay.h"
#include "parallel/server/filter.h"

namespace echelon::exchanges {

struct ServerSettings {
  int servers = 1;         // 0: one on every worker
  bool planned = true;     // all that a server has of the model travels in one message; else a message for each tensor
  int ring = 0;            // places of every server on a hashing ring of segments; 0: every server has one range
  Overlay overlay;         // on the way to a server
  FilterSettings filters;  // what is left out of pushes
  bool factors = false;    // fully connected layers go as factors (factors.h); servers have whole parameters
  bool cache = false;      // every key is merged, pushed and read at steps of its own, if there is a change
  bool racing = false;     // a worker's cores race on its copy within a batch (ComputeSettings::race)
  int replicas = 1;        // of every server, in a chain (chain.h)
  ExchangeKind::FastMemory memory;
  bool processes = false;  // the servers of a rank have a process of their own, where ranks are processes
  struct Death {           // an experiment: the state of this server's member is lost ...
    int server = 0, position = 0;
    std::int64_t at = 0;  // ... when it gets its contributions after so many updates
  };
  std::vector<Death> deaths;
  int sites = 1;                 // groups of workers with servers of their own (sites.h); 0: every host is one
  double site_threshold = 0.01;  // changes above it, relative to the weight, go to other sites; it shrinks

  std::size_t site_barrier = 65536;  // changes of more bytes are announced, and waited for

  bool has_sites() const { return sites != 1; }
  bool is_flat() const { return overlay.kind == Overlay::Kind::flat; }
};

// Problems are added to the reader's. Does not call `done`.
ServerSettings read_server_settings(OptionReader& options);

}  // namespace echelon::exchanges
