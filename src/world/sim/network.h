#pragma once
// The network of a simulated cluster: when a message leaves and when it arrives. The model is in sim/cluster.h.

#include <functional>
#include <memory>
#include <vector>

#include "world/sim/cluster.h"
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
  struct Resource {
    double bandwidth = 1, latency = 0;  // latency: from here to the next
    double free_at = 0;
  };
  struct Way {  // numbers of the resources to pass
    std::size_t resources[4] = {};
    int hops = 0;
  };
  struct Journey {
    int from, to;
    double bytes;
    Way way;
    std::function<void()> left, arrived;
    int passed = 0;
    double tail = 0;  // when the last byte reaches the next resource
  };
  Way way(int from, int to) const;
  void hop(std::shared_ptr<Journey> journey);

  Scheduler& scheduler_;
  std::vector<int> machine_of_;         // of each rank
  std::vector<std::size_t> switch_of_;  // of each machine
  std::vector<Resource> resources_;  // of machine m: NIC out 3m, NIC in 3m+1, memory 3m+2; then of switches: up, down
};

}  // namespace echelon::sim
