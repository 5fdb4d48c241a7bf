#pragma once
// How the nodes (machines) of a job find each other: at one address that all know. One of them listens there; each
// tells how many ranks it has and where they listen; when enough have joined, all get the same table. From then on the
// address is closed to everybody, but held: no second job can form there while the first lives.
//
// `meet` returns the table. BadInput for what a user can cure (another secret, another job, nodes that disagree, a job
// that has begun without this node), Failure if not enough nodes join in time. It leaves no thread behind.

#include <cstdint>
#include <functional>
#include <string>

#include "world/transport/tcp/held_address.h"
#include "world/transport/tcp/job_table.h"
#include "world/transport/tcp/listener.h"

namespace echelon::tcp {

struct RendezvousOptions {
  std::string host;  // of the endpoint
  std::uint16_t port = 0;
  std::string job_id;  // for messages
  int node_rank = -1;  // 0 listens, others do not; -1: the one that can
  int min_nodes = 1, max_nodes = 1;
  double join_seconds = 300;                    // for min_nodes to join
  double last_call_seconds = 3;                 // for more, once min_nodes have joined
  std::function<void(const std::string&)> say;  // what is waited for, after some seconds and then less and less often
};

struct Meeting {
  JobTable table;
  HeldAddress held;  // only where this node has listened; keep it for the life of the job
};

Meeting meet(const RendezvousOptions& options, const Credentials& credentials, const NodeOffer& offer);

}  // namespace echelon::tcp
