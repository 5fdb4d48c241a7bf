#include "world/sim/network.h"

#include <algorithm>
#include <utility>

namespace echelon::sim {

Network::Network(const SimCluster& cluster, Scheduler& scheduler)
    : scheduler_(scheduler),
      machine_of_(cluster.machine_of_ranks()),
      routes_(cluster),
      free_at_(routes_.resources().size()) {}

std::vector<int> Network::way(int from, int to) const {
  return routes_.way(machine_of_[static_cast<std::size_t>(from)], machine_of_[static_cast<std::size_t>(to)]);
}

double Network::latency(int from, int to) const {
  double sum = 0;
  for (const int r : way(from, to)) sum += routes_.resources()[static_cast<std::size_t>(r)].latency;
  return sum;
}

double Network::seconds_per_byte(int from, int to) const {
  double most = 0;
  for (const int r : way(from, to))
    most = std::max(most, 1 / routes_.resources()[static_cast<std::size_t>(r)].bandwidth);
  return most;
}

void Network::carry(int from, int to, std::size_t bytes, std::function<void()> left, std::function<void()> arrived) {
  hop(std::make_shared<Journey>(Journey{from, to, static_cast<double>(bytes), way(from, to), std::move(left),
                                        std::move(arrived), 0, scheduler_.now()}));
}

// The head of the message has reached its next resource.
void Network::hop(std::shared_ptr<Journey> j) {
  const auto number = static_cast<std::size_t>(j->way[j->passed]);
  const ClusterRoutes::Resource& r = routes_.resources()[number];
  double& free_at = free_at_[number];
  const double served = std::max(scheduler_.now(), free_at);
  free_at = served + j->bytes / r.bandwidth;
  if (j->passed == 0 && j->left) scheduler_.at(free_at, j->from, What::left, std::move(j->left));
  j->tail = std::max(j->tail, free_at) + r.latency;
  if (++j->passed == j->way.size()) {
    scheduler_.at(j->tail, j->to, What::arrive, std::move(j->arrived));
  } else {
    scheduler_.at(served + r.latency, nobody, What::hop, [this, j] { hop(j); });
  }
}

}  // namespace echelon::sim
