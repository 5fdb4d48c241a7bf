// Measures what messages and meetings cost in a group: pairs of members play ping-pong with a small and a larger
// message, and the slowest pair's figures count, since a collective is as slow as its slowest link.

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "collective/algorithms.h"
#include "collective/combine.h"
#include "collective/group_state.h"
#include "collective/plans.h"
#include "collective/run_moves.h"

namespace echelon {

namespace {

constexpr std::size_t large_bytes = 128 * 1024;

// Seconds for one message of `bytes` to `peer`: half of the quickest of a few round trips.
double one_way(Group& group, const Call& call, int peer, bool begins, std::span<std::byte> memory, int step) {
  const TypedSpan data{memory.data(), memory.size(), ElementType::bytes};
  const Range all{0, memory.size()};
  MoveRunner runner(group, call, data, Reduction::sum);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 12; ++i) {
    const double start = group.world().now();
    if (begins) runner.move({.to = peer, .out = all, .step = step});
    runner.move({.from = peer, .in = all, .step = step});
    if (!begins) runner.move({.to = peer, .out = all, .step = step});
    best = std::min(best, (group.world().now() - start) / 2);
  }
  runner.finish();
  return best;
}

struct Cost {
  double latency = 0, per_byte = 0;
};

Cost play(Group& group, const Call& call, int peer, bool begins, std::span<std::byte> memory, int step) {
  const double little = one_way(group, call, peer, begins, memory.first(8), step);
  const double much = one_way(group, call, peer, begins, memory, step + 1);
  return {little, std::max(0.0, much - little) / static_cast<double>(memory.size())};
}

// With the neighbour on the same host, if any; those without one do not play.
Cost inside_host(Group& group, const Call& call, std::span<std::byte> memory) {
  const Site& site = group.state().site();
  const int peer = site.place ^ 1;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (peer >= static_cast<int>(site.here.size())) return {unknown, unknown};
  return play(group, call, site.here[static_cast<std::size_t>(peer)], site.place % 2 == 0, memory, 0);
}

Cost between_hosts(Group& group, const Call& call, std::span<std::byte> memory) {
  const Site& site = group.state().site();
  const int peer = site.host ^ 1;
  if (site.place != 0 || peer >= static_cast<int>(site.leaders.size())) return {};
  return play(group, call, site.leaders[static_cast<std::size_t>(peer)], site.host % 2 == 0, memory, 2);
}

void agree(Group& group, const Call& call, std::span<double> figures, Reduction reduction, int step) {
  MoveRunner runner(group, call, typed_span(figures), reduction);
  const Range all{0, figures.size()};
  plan_binomial_reduce(group.size(), group.index(), 0, all, step, runner);
  plan_binomial_broadcast(group.size(), group.index(), 0, all, step + 1, runner);
  runner.finish();
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

}  // namespace

Link measure_link(Group& group) {
  GroupState& state = group.state();
  Call call(group, OperationKind::plain, ElementType::float64, Reduction::max, 0, "measuring the links");
  Buffer memory(large_bytes), other(large_bytes);
  const std::span<std::byte> bytes(memory.data(), large_bytes);
  const Cost inside = inside_host(group, call, bytes), across = between_hosts(group, call, bytes);
  const auto total = static_cast<double>(large_bytes);
  std::array<double, 5> best{inside.latency, inside.per_byte};
  best[2] = quickest(group,
                     [&] {
                       combine(ElementType::float32, Reduction::sum, memory.data(), memory.data(), other.data(),
                               large_bytes / 4);
                     }) /
            total;
  best[3] = quickest(group, [&] { std::memcpy(other.data(), memory.data(), large_bytes); }) / total;
  if (state.meeting) {
    for (int i = 0; i < 50; ++i) state.meeting->meet(state.wait_policy);  // until both sides are awake
    best[4] = quickest(group, [&] { state.meeting->meet(state.wait_policy); });
  }
  std::array<double, 2> worst{across.latency, across.per_byte};
  agree(group, call, best, Reduction::min, 10);
  agree(group, call, worst, Reduction::max, 12);

  Link link;
  link.hosts = static_cast<int>(state.site().leaders.size());
  if (state.site().largest > 1) {
    link.host_latency = best[0];
    link.host_per_byte = best[1];
  }
  link.latency = link.hosts > 1 ? worst[0] : link.host_latency;
  link.per_byte = link.hosts > 1 ? worst[1] : link.host_per_byte;
  link.combine_per_byte = best[2];
  link.touch_per_byte = best[3];
  link.meet = best[4];
  return link;
}

const Link& link_of(Group& group) {
  GroupState& state = group.state();
  if (!state.link) state.link = measure_link(group);
  return *state.link;
}

}  // namespace echelon
