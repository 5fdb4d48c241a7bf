#pragma once
// Who is in a job, as its nodes tell each other: what a node (a machine's launcher) brings, and the table of all ranks
// that follows from it. Plain data.

#include <cstdint>
#include <string>
#include <vector>

#include "world/transport/tcp/secret.h"

namespace echelon::tcp {

struct NodeOffer {                   // a node's ranks
  std::string host_id;               // the same for processes that share memory
  std::string address;               // of its ranks' listeners; empty: the one that the others see it come from
  std::vector<std::uint16_t> ports;  // one for each rank
  std::uint64_t seed = 0;            // that of the node with rank 0 counts

  friend bool operator==(const NodeOffer&, const NodeOffer&) = default;
};

struct Peer {
  int host = 0;  // numbered by first appearance
  std::string address;
  std::uint16_t port = 0;
};

struct JobTable {
  int first_rank = 0;            // of this node
  std::vector<Peer> peers = {};  // of every rank
  std::uint64_t seed = 0;
  Bytes32 session = {};  // a fresh number for this job: ranks of an earlier one are refused
};

// Of nodes in this order, as the node with that index sees it.
JobTable table_of(const std::vector<NodeOffer>& nodes, std::size_t node, const Bytes32& session);

}  // namespace echelon::tcp
