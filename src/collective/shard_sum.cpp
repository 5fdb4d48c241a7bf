#include "collective/shard_sum.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/transfers/message_runner.h"
#include "kernels/vector.h"

namespace echelon {

namespace {

constexpr std::size_t floats_per_line = 16;  // of a cache line: nobody shares a line with another owner

// The tree nodes that a member's shards make up: it sends a partial sum for each of them to every owner.
int node_count(int index, int n, int shards) {
  int count = 0;
  for_each_tree_node(0, shards, shards_of(index, n, shards), [&](ShardRange) { ++count; });
  return count;
}

// The members were agreed upon with other processes, so this is a Mismatch and not a broken invariant.
void check_shards(Group& group, const ShardSum& sum) {
  const ShardRange mine = shards_of(group.index(), group.size(), sum.shards);
  const ShardRange brought = sum.partials.empty() ? ShardRange{mine.first, mine.first}
                                                  : ShardRange{sum.partials.front().first, sum.partials.back().last};
  if (brought.first != mine.first || brought.last != mine.last)
    throw Mismatch(
        fmt::format("rank {} brings the sum over shards {} to {}, but among {} ranks it should have {} to {}",
                    group.world().rank(), brought.first, brought.last, group.size(), mine.first, mine.last));
}

// The elements, relative to `begin`, that a member owns.
Range part_of_member(const ShardSum& sum, int index, int n) {
  return sum.parts.empty() ? part_of(index, n, sum.end - sum.begin, floats_per_line)
                           : sum.parts[static_cast<std::size_t>(index)];
}

// --- in shared memory ---

// Announces where this member's partial sums and its result lie; true if those of all members lie in shared memory.
bool announce_partials(Group& group, const ShardSum& sum) {
  GroupState& state = group.state();
  if (!state.control) return false;
  MemberEntry& entry = state.control->mine();
  const auto address_of = [&](const float* data) {
    return state.shared_address(std::as_bytes(std::span(data + sum.begin, sum.end - sum.begin)));
  };
  entry.address = address_of(sum.out);
  bool shared = entry.address.block != 0 && sum.partials.size() <= entry.partial.size();
  entry.partials = 0;
  for (const PartialSum& p : sum.partials) {
    if (!shared) break;
    const SharedAddress address = address_of(p.data);
    shared = address.block != 0;
    entry.partial[static_cast<std::size_t>(entry.partials++)] = {p.first, p.last, address};
  }
  if (!shared) entry.address = {};
  state.barrier();
  state.control->check_same_operation();
  for (int m = 0; m < group.size(); ++m) shared = shared && state.control->of(m).address.block != 0;
  if (!shared) state.barrier();  // no member changes its entry before all have read it
  return shared;
}

// All members' partial sums, relative to element `begin`.
std::span<const PartialSum> announced_partials(Group& group) {
  GroupState& state = group.state();
  state.partials.clear();
  for (int m = 0; m < group.size(); ++m) {
    const MemberEntry& entry = state.control->of(m);
    for (int i = 0; i < entry.partials; ++i) {
      const SharedPartial& p = entry.partial[static_cast<std::size_t>(i)];
      state.partials.push_back({p.first, p.last, reinterpret_cast<const float*>(state.pointer_to(p.address, m))});
    }
  }
  return state.partials;
}

// Sums the elements that this member owns into its own result or into every member's.
void sum_in_place(Group& group, const ShardSum& sum, bool into_all) {
  GroupState& state = group.state();
  const auto partials = announced_partials(group);
  const Range mine = part_of_member(sum, group.index(), group.size());
  constexpr std::size_t block = 4096;
  for (std::size_t at = mine.begin; at < mine.end; at += block) {
    const std::size_t n = std::min(block, mine.end - at);
    float* own = sum.out + sum.begin + at;
    sum_over_node({0, sum.shards}, partials, at, at + n, own);
    if (!into_all) continue;
    for (int m = 0; m < group.size(); ++m)
      if (m != group.index())
        kernels::copy(reinterpret_cast<float*>(state.pointer_to(state.control->of(m).address, m)) + at, own, n);
  }
  state.barrier();
}

// --- with messages ---

// The partial sums of this member for each node that its shards make up: those of its cores, added up where several
// belong to one node. `room` is for the elements of such nodes, one after the other; relative to `begin`.
void sum_into_nodes(Group& group, const ShardSum& sum, std::vector<PartialSum>& nodes, float* room) {
  const std::size_t elements = sum.end - sum.begin;
  for_each_tree_node(0, sum.shards, shards_of(group.index(), group.size(), sum.shards), [&](ShardRange node) {
    const auto first = std::ranges::find_if(sum.partials, [&](const PartialSum& p) { return p.first >= node.first; });
    const auto last =
        std::find_if(first, sum.partials.end(), [&](const PartialSum& p) { return p.first >= node.last; });
    const std::span<const PartialSum> inside(first, last);
    if (inside.size() == 1) {
      nodes.push_back({node.first, node.last, inside[0].data + sum.begin});
    } else {
      sum_over_node(node, inside, sum.begin, sum.end, room);
      nodes.push_back({node.first, node.last, room});
      room += elements;
    }
  });
}

// Nodes of this member that several of its partial sums make up.
std::size_t joined_nodes(Group& group, const ShardSum& sum) {
  std::size_t joined = 0;
  for_each_tree_node(0, sum.shards, shards_of(group.index(), group.size(), sum.shards), [&](ShardRange node) {
    joined += std::ranges::count_if(
                  sum.partials, [&](const PartialSum& p) { return p.first >= node.first && p.last <= node.last; }) > 1
                  ? 1
                  : 0;
  });
  return joined;
}

// Sends every owner the partial sums of its elements, and receives those of the elements that this member owns.
void exchange_partials(Group& group, const CollectiveOperation& operation, const ShardSum& sum) {
  GroupState& state = group.state();
  const int n = group.size(), index = group.index();
  const std::size_t elements = sum.end - sum.begin;
  const Range mine = part_of_member(sum, index, n);
  int foreign = 0;
  for (int m = 0; m < n; ++m) foreign += m == index ? 0 : node_count(m, n, sum.shards);
  const std::size_t own_nodes = joined_nodes(group, sum);
  auto* scratch = reinterpret_cast<float*>(
      state.scratch((own_nodes * elements + static_cast<std::size_t>(foreign) * mine.count()) * sizeof(float)).data());
  float* arriving = scratch + own_nodes * elements;

  state.nodes.clear();
  sum_into_nodes(group, sum, state.nodes, scratch);
  state.partials.clear();
  state.sends.clear();
  state.receives.clear();
  // All receives and sends at once, to and from different members in every round.
  for (int k = 1; k < n; ++k) {
    const int to = (index + k) % n, from = (index + n - k) % n;
    int step = 0;
    for_each_tree_node(0, sum.shards, shards_of(from, n, sum.shards), [&](ShardRange node) {
      const std::span<float> into(arriving, mine.count());
      state.receives.push_back(
          {state.world.receive(state.rank(from), state.channel, operation.label(step++), std::as_writable_bytes(into)),
           {},
           state.rank(from)});
      // The tree sum reads element i at data[i], and `into` begins with element mine.begin.
      state.partials.push_back({node.first, node.last, into.data() - mine.begin});
      arriving += mine.count();
    });
    const Range theirs = part_of_member(sum, to, n);
    step = 0;
    for (const PartialSum& node : state.nodes)
      state.sends.push_back({state.world.send(state.rank(to), state.channel, operation.label(step++),
                                              std::as_bytes(std::span(node.data + theirs.begin, theirs.count()))),
                             {},
                             state.rank(to)});
  }
  for (PendingTransfer& r : state.receives) state.wait_policy.wait(r.work, r.peer);
  state.partials.insert(state.partials.end(), state.nodes.begin(), state.nodes.end());
  std::ranges::sort(state.partials, {}, &PartialSum::first);
  // `out` may be memory that is still being sent, but the elements that this member owns are not sent.
  sum_over_node({0, sum.shards}, state.partials, mine.begin, mine.end, sum.out + sum.begin + mine.begin);
  for (PendingTransfer& s : state.sends) state.wait_policy.wait(s.work, s.peer);
  state.sends.clear();
  state.receives.clear();
}

// Every member sends the sum of the elements that it owns to all others.
void exchange_sums(Group& group, TypedSpan all, std::string_view name) {
  CollectiveOperation operation(group, OperationKind::all_gather, ElementType::float32, Reduction::sum, all.count,
                                name);
  MessageRunner runner(group, operation, all, Reduction::sum);
  const int n = group.size(), index = group.index();
  for (int k = 1; k < n; ++k) {
    const int to = (index + k) % n, from = (index + n - k) % n;
    runner.run({.to = to,
                .out = part_of(index, n, all.count, floats_per_line),
                .from = from,
                .in = part_of(from, n, all.count, floats_per_line),
                .step = k});
  }
  runner.finish();
}

}  // namespace

void all_reduce_members(Group& group, std::span<float> values) {
  const PartialSum mine{group.index(), group.index() + 1, values.data()};
  all_reduce_shards(group,
                    {.shards = group.size(), .partials = {&mine, 1}, .end = values.size(), .out = values.data()});
}

Range owned(int index, int n, std::size_t begin, std::size_t end) {
  const Range part = part_of(index, n, end - begin, floats_per_line);
  return {begin + part.begin, begin + part.end};
}

void reduce_scatter_shards(Group& group, const ShardSum& sum, std::string_view name) {
  check_shards(group, sum);
  CollectiveOperation operation(group, OperationKind::reduce_scatter, ElementType::float32, Reduction::sum,
                                sum.end - sum.begin, name);
  if (group.size() == 1) return sum_over_shards(sum.shards, sum.partials, sum.begin, sum.end, sum.out);
  if (announce_partials(group, sum))
    sum_in_place(group, sum, false);
  else
    exchange_partials(group, operation, sum);
}

void all_gather_owned(Group& group, float* data, std::size_t begin, std::size_t end, std::string_view name) {
  all_gather(group, typed_span(std::span(data + begin, end - begin)),
             group.state().equal_parts(end - begin, floats_per_line), name);
}

void all_reduce_shards(Group& group, const ShardSum& sum, std::string_view name) {
  check_shards(group, sum);
  {
    CollectiveOperation operation(group, OperationKind::all_reduce, ElementType::float32, Reduction::sum,
                                  sum.end - sum.begin, name);
    if (group.size() == 1) return sum_over_shards(sum.shards, sum.partials, sum.begin, sum.end, sum.out);
    if (announce_partials(group, sum)) return sum_in_place(group, sum, true);
    exchange_partials(group, operation, sum);
  }
  exchange_sums(group, typed_span(std::span(sum.out + sum.begin, sum.end - sum.begin)), name);
}

MemberTraffic shard_sum_traffic(int index, int n, int shards, std::size_t elements) {
  const auto nodes = static_cast<std::uint64_t>(node_count(index, n, shards)),
             others = static_cast<std::uint64_t>(n - 1);
  const std::size_t mine = part_of(index, n, elements, floats_per_line).count();
  return {others * (nodes + 1), (nodes * (elements - mine) + others * mine) * sizeof(float)};
}

}  // namespace echelon
