#pragma once
// The network of a simulated cluster: when a message leaves and when it arrives. The model is in sim/cluster.h.

#include <functional>
#include <memory>
#include <vector>

#include "world/sim/cluster_routes.h"
#include "world/sim/scheduler.h"

namespace echelon::sim {

class Network {
 public:
  Network(const SimCluster& cluster, Scheduler& scheduler);

  // `left` is called when the last byte has left the sender's machine, `arrived` when it has reached the receiver's, as
  // events of these ranks. Messages of one pair of ranks arrive in the order of the calls. `left` may be empty.
  void carry(int from, int to, std::size_t bytes, std::function<void()> left, std::function<void()> arrived);
  double latency(int from, int to) const;           // of no bytes
  double seconds_per_byte(int from, int to) const;  // of the slowest part of the way

 private:
  struct Journey {
    int from, to;
    double bytes;
    std::vector<int> way;
    std::function<void()> left, arrived;
    std::size_t passed = 0;
    double tail = 0;  // when the last byte reaches the next resource
  };
  std::vector<int> way(int from, int to) const;
  void hop(std::shared_ptr<Journey> journey);

  Scheduler& scheduler_;
  std::vector<int> machine_of_;  // of each rank
  const ClusterRoutes routes_;
  std::vector<double> free_at_;  // of each of its resources
};

}  // namespace echelon::sim
