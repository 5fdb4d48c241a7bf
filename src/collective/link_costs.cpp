// Measures what messages and barriers cost in a group: pairs of members exchange a small and a larger message back and
// forth. Between hosts the slowest pair's times count, since a collective is as slow as its slowest link.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/group_state.h"
#include "collective/transfers/message_runner.h"
#include "collective/transfers/plans.h"

namespace echelon {

namespace {

constexpr std::size_t large_bytes = 128 * 1024;

// Seconds for one message of `bytes` to `peer`: half of the quickest of a few round trips.
double one_way(Group& group, const CollectiveOperation& operation, int peer, bool begins, std::span<std::byte> memory,
               int step) {
  const TypedSpan data{memory.data(), memory.size(), ElementType::bytes};
  const Range all{0, memory.size()};
  MessageRunner runner(group, operation, data, Reduction::sum);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 12; ++i) {
    const double start = group.world().now();
    if (begins) runner.run({.to = peer, .out = all, .step = step});
    runner.run({.from = peer, .in = all, .step = step});
    if (!begins) runner.run({.to = peer, .out = all, .step = step});
    best = std::min(best, (group.world().now() - start) / 2);
  }
  runner.finish();
  return best;
}

PairCost ping_pong(Group& group, const CollectiveOperation& operation, int peer, bool begins,
                   std::span<std::byte> memory, int step) {
  const double small = one_way(group, operation, peer, begins, memory.first(8), step);
  const double large = one_way(group, operation, peer, begins, memory, step + 1);
  // Beside busy programs the small one may take longer; a byte still costs something: at most this.
  return {small, (large > small ? large - small : large) / static_cast<double>(memory.size())};
}

// With the neighbour on the same host; a member without one measures nothing.
PairCost cost_inside_host(Group& group, const CollectiveOperation& operation, std::span<std::byte> memory) {
  const HostTopology& hosts = group.state().hosts();
  const int peer = hosts.local_index ^ 1;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (peer >= static_cast<int>(hosts.local.size())) return {unknown, unknown};
  return ping_pong(group, operation, hosts.local[static_cast<std::size_t>(peer)], hosts.local_index % 2 == 0, memory,
                   0);
}

PairCost cost_between_hosts(Group& group, const CollectiveOperation& operation, std::span<std::byte> memory) {
  const HostTopology& hosts = group.state().hosts();
  const int peer = hosts.host_index ^ 1;
  if (hosts.local_index != 0 || peer >= static_cast<int>(hosts.leaders.size())) return {};
  return ping_pong(group, operation, hosts.leaders[static_cast<std::size_t>(peer)], hosts.host_index % 2 == 0, memory,
                   2);
}

// Reduces records of doubles, field by field, over all members.
template <typename T>
T agree(Group& group, const CollectiveOperation& operation, const T& mine, Reduction reduction, int step) {
  auto fields = std::bit_cast<std::array<double, sizeof(T) / sizeof(double)>>(mine);
  MessageRunner runner(group, operation, typed_span(std::span<double>(fields)), reduction);
  const Range all{0, fields.size()};
  plan_binomial_reduce(group.size(), group.index(), 0, all, step, runner);
  plan_binomial_broadcast(group.size(), group.index(), 0, all, step + 1, runner);
  runner.finish();
  return std::bit_cast<T>(fields);
}

template <typename F>
double quickest(Group& group, const F& f) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 50; ++i) {
    const double start = group.world().now();
    f();
    best = std::min(best, group.world().now() - start);
  }
  return best;
}

struct LocalCosts {  // what a member can measure on its host
  double latency, per_byte, combine_per_byte, memory_per_byte, barrier;
};

LocalCosts measure_locally(Group& group, const CollectiveOperation& operation, std::span<std::byte> memory) {
  GroupState& state = group.state();
  const PairCost message = cost_inside_host(group, operation, memory);
  Buffer other(memory.size());
  const auto bytes = static_cast<double>(memory.size());
  const double combining = quickest(group, [&] {
    combine(ElementType::float32, Reduction::sum, memory.data(), memory.data(), other.data(),
            memory.size() / sizeof(float));
  });
  const double copying = quickest(group, [&] { std::memcpy(other.data(), memory.data(), memory.size()); });
  LocalCosts costs{message.latency, message.per_byte, combining / bytes, copying / bytes, 0};
  if (state.control) {
    for (int i = 0; i < 50; ++i) state.barrier();  // until all members are awake
    costs.barrier = quickest(group, [&] { state.barrier(); });
  }
  return costs;
}

}  // namespace

LinkCosts measure_link_costs(Group& group) {
  CollectiveOperation operation(group, OperationKind::plain, ElementType::float64, Reduction::max, 0,
                                "measuring the links");
  Buffer memory(large_bytes);
  const std::span<std::byte> bytes(memory.data(), large_bytes);
  const LocalCosts measured = measure_locally(group, operation, bytes);
  const PairCost between = cost_between_hosts(group, operation, bytes);
  const LocalCosts local = agree(group, operation, measured, Reduction::min, 10);
  const PairCost across = agree(group, operation, between, Reduction::max, 12);

  const HostTopology& hosts = group.state().hosts();
  LinkCosts costs;
  costs.hosts = static_cast<int>(hosts.leaders.size());
  if (hosts.most_local > 1) {
    costs.host_latency = local.latency;
    costs.host_per_byte = local.per_byte;
  }
  costs.latency = costs.hosts > 1 ? across.latency : costs.host_latency;
  costs.per_byte = costs.hosts > 1 ? across.per_byte : costs.host_per_byte;
  costs.combine_per_byte = local.combine_per_byte;
  costs.memory_per_byte = local.memory_per_byte;
  costs.barrier = local.barrier;
  return costs;
}

std::vector<PairCost> measure_pairs(Group& group) {
  CollectiveOperation operation(group, OperationKind::plain, ElementType::float64, Reduction::max, 0,
                                "measuring every link");
  Buffer memory(large_bytes);
  std::vector<PairCost> costs(static_cast<std::size_t>(group.size()));
  // All members go through the pairs in the same order, so none waits for one that waits for it.
  for (int a = 0; a < group.size(); ++a)
    for (int b = a + 1; b < group.size(); ++b) {
      if (group.index() != a && group.index() != b) continue;
      const int peer = group.index() == a ? b : a;
      costs[static_cast<std::size_t>(peer)] =
          ping_pong(group, operation, peer, group.index() == a, {memory.data(), large_bytes}, 0);
    }
  return costs;
}

const LinkCosts& link_costs(Group& group) {
  GroupState& state = group.state();
  if (!state.link_costs) state.link_costs = measure_link_costs(group);
  return *state.link_costs;
}

}  // namespace echelon
