#include "world/sim/cluster_routes.h"

namespace echelon {

ClusterRoutes::ClusterRoutes(const SimCluster& cluster) : shape_(cluster.torus.shape) {
  for (const SimCluster::Machine& m : cluster.machines) {
    resources_.push_back({m.bandwidth, m.latency});
    resources_.push_back({m.bandwidth, m.latency});
    resources_.push_back({m.memory_bandwidth, m.memory_latency});
    switch_of_.push_back(m.attached_to);
  }
  if (shape_.empty())
    for (const SimCluster::Switch& s : cluster.switches) resources_.insert(resources_.end(), 2, {s.uplink, s.latency});
  else
    // A message passes places of the grid whose machines have no part in the job, too.
    resources_.insert(resources_.end(), 2 * shape_.size() * static_cast<std::size_t>(cluster.torus.machines()),
                      {cluster.torus.bandwidth, cluster.torus.latency});
}

std::vector<int> ClusterRoutes::way(int a, int b) const {
  if (a == b) return {3 * a + 2};
  if (!shape_.empty()) return way_on_torus(a, b);
  const int first = 3 * static_cast<int>(switch_of_.size());
  const int up = switch_of_[static_cast<std::size_t>(a)], down = switch_of_[static_cast<std::size_t>(b)];
  if (up == down) return {3 * a, 3 * b + 1};
  return {3 * a, first + 2 * up, first + 2 * down + 1, 3 * b + 1};
}

// Along the last dimension first, whose neighbours have neighbouring numbers; the shorter way round.
std::vector<int> ClusterRoutes::way_on_torus(int from, int to) const {
  const int first = 3 * static_cast<int>(switch_of_.size()), dimensions = static_cast<int>(shape_.size());
  std::vector<int> way;
  int at = from, stride = 1;
  for (int d = dimensions - 1; d >= 0; --d) {
    const int size = shape_[static_cast<std::size_t>(d)];
    const int here = at / stride % size, there = to / stride % size, forwards = (there - here + size) % size;
    const bool backwards = 2 * forwards > size;
    for (int i = backwards ? size - forwards : forwards; i > 0; --i) {
      way.push_back(first + 2 * (at * dimensions + d) + (backwards ? 1 : 0));
      const int coordinate = at / stride % size, next = (coordinate + (backwards ? size - 1 : 1)) % size;
      at += (next - coordinate) * stride;
    }
    stride *= size;
  }
  return way;
}

}  // namespace echelon
