#include "world/sim/network.h"

#include <algorithm>
#include <utility>

namespace echelon::sim {

Network::Network(const SimCluster& cluster, Scheduler& scheduler)
    : scheduler_(scheduler), machine_of_(cluster.machine_of_ranks()) {
  for (const auto& m : cluster.machines) {
    resources_.push_back({.bandwidth = m.bandwidth, .latency = m.latency});
    resources_.push_back({.bandwidth = m.bandwidth, .latency = m.latency});
    resources_.push_back({.bandwidth = m.memory_bandwidth, .latency = m.memory_latency});
    switch_of_.push_back(static_cast<std::size_t>(m.attached_to));
  }
  for (const auto& s : cluster.switches)
    for (int direction = 0; direction < 2; ++direction)
      resources_.push_back({.bandwidth = s.uplink, .latency = s.latency});
}

Network::Way Network::way(int from, int to) const {
  const auto a = static_cast<std::size_t>(machine_of_[static_cast<std::size_t>(from)]);
  const auto b = static_cast<std::size_t>(machine_of_[static_cast<std::size_t>(to)]);
  if (a == b) return {{3 * a + 2}, 1};
  if (switch_of_[a] == switch_of_[b]) return {{3 * a, 3 * b + 1}, 2};
  const std::size_t first = 3 * switch_of_.size();
  return {{3 * a, first + 2 * switch_of_[a], first + 2 * switch_of_[b] + 1, 3 * b + 1}, 4};
}

double Network::latency(int from, int to) const {
  const Way w = way(from, to);
  double sum = 0;
  for (int i = 0; i < w.hops; ++i) sum += resources_[w.resources[i]].latency;
  return sum;
}

double Network::seconds_per_byte(int from, int to) const {
  const Way w = way(from, to);
  double most = 0;
  for (int i = 0; i < w.hops; ++i) most = std::max(most, 1 / resources_[w.resources[i]].bandwidth);
  return most;
}

void Network::carry(int from, int to, std::size_t bytes, std::function<void()> left, std::function<void()> arrived) {
  hop(std::make_shared<Journey>(Journey{from, to, static_cast<double>(bytes), way(from, to), std::move(left),
                                        std::move(arrived), 0, scheduler_.now()}));
}

// The head of the message has reached its next resource.
void Network::hop(std::shared_ptr<Journey> j) {
  Resource& r = resources_[j->way.resources[j->passed]];
  const double served = std::max(scheduler_.now(), r.free_at);
  r.free_at = served + j->bytes / r.bandwidth;
  if (j->passed == 0 && j->left) scheduler_.at(r.free_at, j->from, What::left, std::move(j->left));
  j->tail = std::max(j->tail, r.free_at) + r.latency;
  if (++j->passed == j->way.hops) {
    scheduler_.at(j->tail, j->to, What::arrive, std::move(j->arrived));
  } else {
    scheduler_.at(served + r.latency, nobody, What::hop, [this, j] { hop(j); });
  }
}

}  // namespace echelon::sim
