#include "foresight/costs/platform.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace echelon::foresight {

Platform Platform::this_machine(const Profile& profile, int ranks, const LinkLimit& link) {
  Platform p;
  p.profile_ = &profile;
  p.machine_of_.assign(static_cast<std::size_t>(ranks), 0);
  p.cores_ = {profile.cores};
  p.ranks_on_ = {ranks};
  p.crowd_ = ranks;
  p.switch_of_ = {0};
  p.speed_ = {profile.ops.roofline.flops};
  if (const auto it = profile.links.find(ranks); it != profile.links.end()) p.links_ = it->second;
  p.shares_memory_ = link.bytes_per_second <= 0 && link.latency <= 0;
  if (p.shares_memory_) {
    p.links_.latency = p.links_.host_latency, p.links_.per_byte = p.links_.host_per_byte;
    // Memory serves all at once: a message takes its own time, and holds nobody up.
    p.resources_.assign(1, {0, p.links_.host_latency});
    return p;
  }
  p.by_rank_ = true;
  const double speed = link.bytes_per_second > 0 ? link.bytes_per_second : 1 / p.links_.host_per_byte;
  p.wire_message_ = p.links_.latency;
  if (const auto wire = profile.wires.find(ranks); wire != profile.wires.end()) {
    p.links_.latency = wire->second.quickest;
    p.wire_message_ = wire->second.usual;
  }
  p.links_.latency += link.latency;
  p.links_.per_byte = 1 / speed;
  p.links_.barrier = 0;
  for (int r = 0; r < ranks; ++r) {  // out, in
    p.resources_.push_back({speed, p.wire_message_ + link.latency});
    p.resources_.push_back({speed, 0});
  }
  return p;
}

Platform Platform::of_cluster(const SimCluster& cluster) {
  Platform p;
  p.machine_of_ = cluster.machine_of_ranks();
  for (const SimCluster::Machine& m : cluster.machines) {
    p.cores_.push_back(m.ranks);  // each rank has a core
    p.ranks_on_.push_back(m.ranks);
    p.crowd_ = std::max(p.crowd_, m.ranks);
    p.switch_of_.push_back(m.attached_to);
    p.speed_.push_back(m.flops);
    const SimCluster::Machine& first = cluster.machines.front();
    p.alike_ = p.alike_ && m.flops == first.flops && m.bandwidth == first.bandwidth && m.latency == first.latency &&
               m.ranks == first.ranks;
  }
  p.routes_ = std::make_shared<ClusterRoutes>(cluster);
  p.torus_wires_ = 2 * static_cast<int>(cluster.torus.shape.size());
  for (const ClusterRoutes::Resource& r : p.routes_->resources()) p.resources_.push_back({r.bandwidth, r.latency});
  p.links_.hosts = static_cast<int>(cluster.machines.size());
  p.links_.combine_per_byte = p.links_.barrier = p.links_.memory_per_byte = 0;
  p.links_.latency = p.links_.per_byte = 0;
  const int n = p.ranks();
  // As measure_link_costs does: neighbouring hosts exchange messages, and the slowest pair counts.
  std::vector<int> leaders;
  for (int r = 0; r < n; ++r)
    if (r == 0 || p.machine_of(r) != p.machine_of(r - 1)) leaders.push_back(r);
  for (std::size_t i = 0; i + 1 < leaders.size(); i += 2) {
    p.links_.latency = std::max(p.links_.latency, p.latency(leaders[i], leaders[i + 1]));
    p.links_.per_byte = std::max(p.links_.per_byte, 1 / p.bytes_per_second(leaders[i], leaders[i + 1]));
  }
  for (int m = 0; m < p.machines(); ++m)
    if (p.ranks_on(m) > 1) {
      const auto& memory = p.resources_[static_cast<std::size_t>(3 * m + 2)];
      p.links_.host_latency = memory.latency, p.links_.host_per_byte = 1 / memory.bytes_per_second;
    }
  if (leaders.size() == 1) p.links_.latency = p.links_.host_latency, p.links_.per_byte = p.links_.host_per_byte;
  return p;
}

Platform Platform::on_network(const Profile& profile, const std::vector<std::string>& host_of_rank,
                              const LinkCosts& links) {
  Platform p;
  p.profile_ = &profile;
  p.links_ = links;
  std::vector<std::string> hosts;
  for (const std::string& host : host_of_rank) {
    const auto it = std::ranges::find(hosts, host);
    p.machine_of_.push_back(static_cast<int>(it - hosts.begin()));
    if (it == hosts.end()) hosts.push_back(host), p.ranks_on_.push_back(0);
    p.crowd_ = std::max(p.crowd_, ++p.ranks_on_[static_cast<std::size_t>(p.machine_of_.back())]);
  }
  const std::size_t machines = hosts.size();
  p.cores_.assign(machines, profile.cores);
  p.switch_of_.assign(machines, 0);
  p.speed_.assign(machines, profile.ops.roofline.flops);
  const auto cost_of = [&](std::size_t a, std::size_t b) {
    const PairCost* kept = profile.between(hosts[a], hosts[b]);
    return kept ? *kept : PairCost{links.latency, links.per_byte};
  };
  const auto speed = [](double per_byte) { return 1 / std::max(per_byte, 1e-15); };
  for (std::size_t a = 0; a < machines; ++a) {
    double quickest = machines > 1 ? 1e-3 : links.per_byte;  // seconds for a byte: a NIC is as quick as its best wire
    for (std::size_t b = 0; b < machines; ++b)
      if (a != b) quickest = std::min(quickest, cost_of(a, b).per_byte);
    p.resources_.push_back({speed(quickest), 0});
    p.resources_.push_back({speed(quickest), 0});
    p.resources_.push_back({speed(links.host_per_byte), links.host_latency});
  }
  p.wires_ = static_cast<int>(p.resources_.size());
  if (machines > 1) p.links_.latency = p.links_.per_byte = 0;
  for (std::size_t a = 0; a < machines; ++a)
    for (std::size_t b = 0; b < machines; ++b) {
      const PairCost cost = a == b ? PairCost{} : cost_of(a, b);
      p.resources_.push_back({speed(cost.per_byte), cost.latency});
      p.links_.latency = std::max(p.links_.latency, cost.latency);  // collectives are as slow as the slowest pair
      p.links_.per_byte = std::max(p.links_.per_byte, cost.per_byte);
      p.alike_ = p.alike_ && (a == b || cost.per_byte == cost_of(0, 1).per_byte);
    }
  p.links_.hosts = static_cast<int>(machines);
  p.links_.barrier = 0;
  return p;
}

double Platform::seconds(int rank, const CoreSeconds& measured, double flops) const {
  if (!is_here()) return flops / speed(rank);
  return measured.with(busy(), cores_.front());
}

std::vector<int> Platform::way(int from, int to) const {
  if (from == to) return {};
  const int a = machine_of(from), b = machine_of(to);
  if (routes_) return routes_->way(a, b);
  if (by_rank_) return {2 * from, 2 * to + 1};
  if (wires_ < 0) return {0};
  if (a == b) return {3 * a + 2};
  return {3 * a, wires_ + a * machines() + b, 3 * b + 1};
}

double Platform::latency(int from, int to) const {
  double sum = 0;
  for (const int r : way(from, to)) sum += resources_[static_cast<std::size_t>(r)].latency;
  return sum;
}

double Platform::bytes_per_second(int from, int to) const {
  double least = std::numeric_limits<double>::infinity();
  for (const int r : way(from, to))
    if (const double b = resources_[static_cast<std::size_t>(r)].bytes_per_second; b > 0) least = std::min(least, b);
  if (is_here() && !by_rank_ && wires_ < 0) least = 1 / std::max(links_.host_per_byte, 1e-15);
  return least;
}

Wires::Wires(const Platform& platform) : platform_(platform), free_(platform.resources().size()) {}

double Wires::arrival(int from, int to, double bytes, double at) {
  double head = at, tail = at;
  for (const int r : platform_.way(from, to)) {
    const auto number = static_cast<std::size_t>(r);
    const Platform::Resource& resource = platform_.resources()[number];
    if (resource.bytes_per_second > 0) {
      const double begin = std::max(head, free_[number]);
      free_[number] = begin + bytes / resource.bytes_per_second;
      tail = std::max(tail, free_[number]);
      head = begin;
    }
    head += resource.latency, tail += resource.latency;
  }
  if (from != to && platform_.shares_memory()) tail += bytes * platform_.links().host_per_byte;
  return tail;
}

}  // namespace echelon::foresight
