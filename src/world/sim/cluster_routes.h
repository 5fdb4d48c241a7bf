#pragma once
// What a message passes between two machines of a cluster, in order: for the simulated network, and for whoever
// predicts it (foresight/costs/platform.h). Immutable; thread-safe.

#include <vector>

#include "world/sim/cluster.h"

namespace echelon {

class ClusterRoutes {
 public:
  explicit ClusterRoutes(const SimCluster& cluster);

  struct Resource {
    double bandwidth = 1;  // bytes a second
    double latency = 0;    // from here to the next
  };
  // Of machine m: NIC out 3m, NIC in 3m + 1, memory 3m + 2. Then of each switch: up, down; or of each machine on a
  // torus: the wire forwards and the one backwards along every dimension.
  const std::vector<Resource>& resources() const { return resources_; }
  std::vector<int> way(int from_machine, int to_machine) const;  // numbers of resources

 private:
  std::vector<int> way_on_torus(int from, int to) const;

  std::vector<Resource> resources_;
  std::vector<int> switch_of_;  // of each machine
  std::vector<int> shape_;      // of the torus; empty: there is none
};

}  // namespace echelon
