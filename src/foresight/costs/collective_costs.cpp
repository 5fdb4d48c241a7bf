#include "foresight/costs/collective_costs.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace echelon::foresight {

namespace {

// Adds `bytes` to everything on the way from one rank to another.
void load(std::map<int, double>& loads, const std::vector<int>& way, double bytes) {
  for (const int resource : way) loads[resource] += bytes;
}

double longest(const Platform& platform, const std::map<int, double>& loads) {
  double seconds = 0;
  for (const auto& [resource, bytes] : loads)
    if (const double b = platform.resources()[static_cast<std::size_t>(resource)].bytes_per_second; b > 0)
      seconds = std::max(seconds, bytes / b);
  return seconds;
}

// All send to all. Of many members a few are followed, and what they load is taken to be spread over all wires of a
// direction, which is exact for the whole of a torus.
HalfSumCost half_on_torus(const Platform& platform, std::span<const int> ranks) {
  constexpr std::size_t most_followed = 256, few = 8;
  const std::size_t n = ranks.size(), step = n <= most_followed ? 1 : n / few;
  std::vector<double> loads(platform.resources().size());
  double farthest = 0, mean = 0, sources = 0;
  for (std::size_t i = 0; i < n; i += step, ++sources)
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const double latency = platform.latency(ranks[i], ranks[j]);
      farthest = std::max(farthest, latency), mean += latency / static_cast<double>(n - 1);
      for (const int r : platform.way(ranks[i], ranks[j]))
        loads[static_cast<std::size_t>(r)] += 1.0 / static_cast<double>(n);
    }
  HalfSumCost cost{.message = farthest};
  cost.latency = farthest + static_cast<double>(n - 2) / 2 * mean / sources;
  const auto first = static_cast<std::size_t>(3 * platform.machines()),
             wires = static_cast<std::size_t>(platform.torus_wires());
  std::vector<double> directions(wires);
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const double seconds = loads[r] / platform.resources()[r].bytes_per_second;
    if (step == 1 || r < first)
      cost.per_byte = std::max(cost.per_byte, seconds);
    else
      directions[(r - first) % wires] += seconds * static_cast<double>(n) / sources / platform.machines();
  }
  for (const double seconds : directions) cost.per_byte = std::max(cost.per_byte, seconds);
  return cost;
}

}  // namespace

HalfSumCost owners_half(const Platform& platform, std::span<const int> ranks) {
  const auto n = static_cast<double>(ranks.size());
  HalfSumCost cost;
  if (n < 2) return cost;
  const LinkCosts& l = platform.links();
  if (platform.is_here() && platform.shares_memory())  // every member reads the others' parts in place
    return {l.barrier, (n - 1) / n * l.memory_per_byte};
  if (platform.is_torus()) return half_on_torus(platform, ranks);
  std::map<int, double> loads;  // of each resource, for a sum of one byte
  if (platform.has_wires()) {
    for (const int rank : ranks) loads[2 * rank] += (n - 1) / n, loads[2 * rank + 1] += (n - 1) / n;
    // Every further message costs a processor about half of what one takes without bytes, and what arrives is added up.
    cost.message = platform.latency(ranks[0], ranks[1]);
    cost.latency = cost.message + (n - 2) / 2 * platform.wire_message();
    cost.per_byte = longest(platform, loads) + (n - 1) / n / 2 * l.combine_per_byte;
    return cost;
  }
  std::map<int, double> on_machine, on_switch;
  for (const int rank : ranks) ++on_machine[platform.machine_of(rank)];
  for (const auto& [machine, count] : on_machine) on_switch[platform.switch_of(machine)] += count;
  double far = 0, second = 0, core = 0;  // the two farthest machines, and from switch to switch
  for (const auto& [machine, count] : on_machine) {
    loads[3 * machine] = loads[3 * machine + 1] = count * (n - count) / n;
    loads[3 * machine + 2] = count * (count - 1) / n;
    const double latency = platform.resources()[static_cast<std::size_t>(3 * machine)].latency;
    if (latency >= far)
      second = far, far = latency;
    else
      second = std::max(second, latency);
  }
  if (platform.is_here()) {  // a network of hosts: its slowest pair, and what the processor adds up
    cost.message = on_machine.size() > 1 ? l.latency : l.host_latency;
    cost.latency = cost.message * (1 + (n - 2) / 2);
    cost.per_byte = longest(platform, loads) + (n - 1) / n / 2 * l.combine_per_byte;
    if (on_machine.size() > 1) {
      const double each = (n - 1) / n * l.per_byte / static_cast<double>(on_machine.size() - 1);
      cost.per_byte = std::max(cost.per_byte, each);
    }
    return cost;
  }
  const int first_switch = 3 * platform.machines();
  if (on_switch.size() > 1)
    for (const auto& [number, count] : on_switch) {
      loads[first_switch + 2 * number] = loads[first_switch + 2 * number + 1] = count * (n - count) / n;
      core = std::max(core, 2 * platform.resources()[static_cast<std::size_t>(first_switch + 2 * number)].latency);
    }
  cost.message = on_machine.size() > 1 ? far + second + core : l.host_latency;
  // A member sends to the next one when it has heard from the one before: half a latency for each, in the mean of both
  // halves (collective/all_reduce/owners.cpp).
  cost.latency = cost.message * (1 + (n - 2) / 2);
  cost.per_byte = longest(platform, loads);
  return cost;
}

double ring_seconds(const Platform& platform, std::span<const int> ranks, double bytes) {
  const auto n = static_cast<double>(ranks.size());
  if (n < 2) return 0;
  std::map<int, double> loads;
  double latency = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int to = ranks[(i + 1) % ranks.size()];
    load(loads, platform.way(ranks[i], to), bytes / n);
    latency = std::max(latency, platform.latency(ranks[i], to));
  }
  double a_step = latency + longest(platform, loads);
  if (platform.is_here() && platform.shares_memory()) a_step += bytes / n * platform.links().host_per_byte;
  return 2 * (n - 1) * a_step;
}

double small_all_gather_seconds(const Platform& platform, double bytes_each) {
  const int n = platform.ranks();
  if (n < 2) return 0;
  const LinkCosts& l = platform.links();
  const double message = platform.has_wires() ? platform.latency(0, 1) : l.latency;
  constexpr int most_in_a_ring = 64;
  if (n <= most_in_a_ring) return (n - 1) * (message + bytes_each * l.per_byte);
  const double all = bytes_each * n, levels = std::ceil(std::log2(n));
  return message + all * l.per_byte + levels * (message + all * l.per_byte);
}

}  // namespace echelon::foresight
