#include "foresight/scaled_cluster.h"

#include <algorithm>

namespace echelon::foresight {

SimCluster scaled_cluster(const SimCluster& cluster, int workers) {
  SimCluster scaled;
  const int switches = static_cast<int>(cluster.switches.size());
  scaled.torus = cluster.torus;
  int ranks = 0;
  for (int copy = 0; ranks < workers; ++copy) {
    if (copy > 0 && !scaled.torus.shape.empty()) scaled.torus.shape.front() += cluster.torus.shape.front();
    const bool own_switches = copy == 0 || switches > 1;  // a single switch is the one that everybody is attached to
    if (own_switches) scaled.switches.insert(scaled.switches.end(), cluster.switches.begin(), cluster.switches.end());
    for (SimCluster::Machine machine : cluster.machines) {
      if (ranks == workers) break;
      machine.ranks = std::min(machine.ranks, workers - ranks);
      if (switches > 1) machine.attached_to += copy * switches;
      ranks += machine.ranks;
      scaled.machines.push_back(machine);
    }
  }
  return scaled;
}

}  // namespace echelon::foresight
