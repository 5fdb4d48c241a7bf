#include "world/sim/cluster.h"

#include <cmath>

#include "base/error.h"

namespace echelon {

int SimCluster::ranks() const {
  int count = 0;
  for (const Machine& machine : machines) count += machine.ranks;
  return count;
}

std::vector<int> SimCluster::machine_of_ranks() const {
  std::vector<int> of;
  for (std::size_t m = 0; m < machines.size(); ++m)
    of.insert(of.end(), static_cast<std::size_t>(machines[m].ranks), static_cast<int>(m));
  return of;
}

std::int64_t SimCluster::Torus::machines() const {
  std::int64_t count = 1;
  for (const int size : shape) count *= size;
  return count;
}

SimCluster SimCluster::uniform(int n, double latency, double bandwidth, double flops) {
  SimCluster cluster;
  cluster.switches.push_back({.name = "switch", .uplink = bandwidth, .latency = 0});
  const Machine machine{.name = "", .flops = flops, .bandwidth = bandwidth, .latency = latency / 2};
  cluster.machines.assign(static_cast<std::size_t>(n), machine);
  for (int i = 0; i < n; ++i) cluster.machines[static_cast<std::size_t>(i)].name = "machine" + std::to_string(i);
  return cluster;
}

void check(const SimCluster& cluster) {
  std::string problems;
  const auto need = [&](bool good, const std::string& text) {
    if (!good) problems += "\n  " + text;
  };
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  const auto not_negative = [](double x) { return x >= 0 && std::isfinite(x); };
  for (const auto& m : cluster.machines) {
    need(m.ranks >= 0, fmt::format("machine {}: {} ranks", m.name, m.ranks));
    need(positive(m.flops) && positive(m.bandwidth) && positive(m.memory_bandwidth),
         fmt::format("machine {}: its speeds must be positive", m.name));
    need(not_negative(m.latency) && not_negative(m.memory_latency),
         fmt::format("machine {}: its latencies must not be negative", m.name));
    need(m.attached_to >= 0 && m.attached_to < static_cast<int>(cluster.switches.size()),
         fmt::format("machine {}: attached to switch {}, of {}", m.name, m.attached_to, cluster.switches.size()));
  }
  for (const auto& s : cluster.switches)
    need(positive(s.uplink) && not_negative(s.latency),
         fmt::format("switch {}: its uplink must be positive and its latency not negative", s.name));
  if (!cluster.torus.shape.empty()) {
    need(positive(cluster.torus.bandwidth) && not_negative(cluster.torus.latency),
         "the torus: its bandwidth must be positive and its latency not negative");
    need(cluster.torus.machines() >= static_cast<std::int64_t>(cluster.machines.size()),
         fmt::format("the torus has {} places for {} machines", cluster.torus.machines(), cluster.machines.size()));
  }
  need(!problems.empty() || cluster.ranks() >= 1, "it has no ranks");
  if (!problems.empty()) bad_input("this cluster cannot be simulated:{}", problems);
}

}  // namespace echelon
