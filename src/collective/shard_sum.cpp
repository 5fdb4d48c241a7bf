#include "collective/shard_sum.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/run_moves.h"
#include "kernels/vector.h"

namespace echelon {

namespace {

constexpr std::size_t line = 16;  // floats

std::span<const Range> owned_parts(Group& group, std::size_t begin, std::size_t end) {
  return group.state().equal_parts(end - begin, line);
}

// AllReduceOptions many partial sums a member sends to an owner: one for each node of the tree that its shards make up.
int nodes_of(int index, int n, int shards) {
  int count = 0;
  for_each_tree_node(0, shards, shards_of(index, n, shards), [&](ShardRange) { ++count; });
  return count;
}

// Who is in the group was agreed over wires, so this is a Mismatch and not a broken invariant of ours.
void check(Group& group, const ShardSum& sum) {
  const ShardRange mine = shards_of(group.index(), group.size(), sum.shards);
  const ShardRange brought = sum.partials.empty() ? ShardRange{mine.first, mine.first}
                                                  : ShardRange{sum.partials.front().first, sum.partials.back().last};
  if (brought.first != mine.first || brought.last != mine.last)
    throw Mismatch(
        fmt::format("rank {} brings the sum over shards {} to {}, but among {} ranks it should have {} to {}",
                    group.world().rank(), brought.first, brought.last, group.size(), mine.first, mine.last));
}

// --- direct
// -----------------------------------------------------------------------------------------------------------

// Tells the others where this member's partial sums and its result lie, and learns whether all members' can be seen.
bool all_visible(Group& group, const ShardSum& sum) {
  GroupState& state = group.state();
  if (!state.meeting) return false;
  Slot& slot = state.meeting->mine();
  const auto place_of = [&](const float* data) {
    return state.find(std::as_bytes(std::span(data + sum.begin, sum.end - sum.begin)));
  };
  slot.place = place_of(sum.out);
  bool visible = slot.place.block != 0 && sum.partials.size() <= slot.partial.size();
  slot.partials = 0;
  for (const PartialSum& p : sum.partials) {
    if (!visible) break;
    const SharedPlace place = place_of(p.data);
    visible = place.block != 0;
    slot.partial[static_cast<std::size_t>(slot.partials++)] = {p.first, p.last, place};
  }
  if (!visible) slot.place = {};
  state.meeting->meet(state.wait_policy);
  state.meeting->compare();
  for (int m = 0; m < group.size(); ++m) visible = visible && state.meeting->of(m).place.block != 0;
  if (!visible) state.meeting->meet(state.wait_policy);  // nobody changes its slot before all have read it
  return visible;
}

// All members' partial sums, as seen from here, relative to element `begin`.
std::span<const PartialSum> visible_partials(Group& group) {
  GroupState& state = group.state();
  state.partials.clear();
  for (int m = 0; m < group.size(); ++m) {
    const Slot& slot = state.meeting->of(m);
    for (int i = 0; i < slot.partials; ++i) {
      const SharedPartial& p = slot.partial[static_cast<std::size_t>(i)];
      state.partials.push_back({p.first, p.last, reinterpret_cast<const float*>(state.see(p.place, m))});
    }
  }
  return state.partials;
}

// Every member sums the elements that it owns, from where they lie, into its own result or into everybody's.
void direct_sum(Group& group, const ShardSum& sum, bool into_all) {
  GroupState& state = group.state();
  const auto partials = visible_partials(group);
  const Range mine = part_of(group.index(), group.size(), sum.end - sum.begin, line);
  constexpr std::size_t block = 4096;
  for (std::size_t at = mine.begin; at < mine.end; at += block) {
    const std::size_t n = std::min(block, mine.end - at);
    float* own = sum.out + sum.begin + at;
    sum_over_node({0, sum.shards}, partials, at, at + n, own);
    if (!into_all) continue;
    for (int m = 0; m < group.size(); ++m)
      if (m != group.index())
        kernels::copy(reinterpret_cast<float*>(state.see(state.meeting->of(m).place, m)) + at, own, n);
  }
  state.meeting->meet(state.wait_policy);
}

// --- owners
// -----------------------------------------------------------------------------------------------------------

// The partial sums of this member for each node that its shards make up: those that its cores brought, folded where
// several belong to one node. `fold` has room for the elements of one node after the other; relative to `begin`.
void fold_into_nodes(Group& group, const ShardSum& sum, std::vector<PartialSum>& nodes, float* fold) {
  const std::size_t elements = sum.end - sum.begin;
  for_each_tree_node(0, sum.shards, shards_of(group.index(), group.size(), sum.shards), [&](ShardRange node) {
    const auto first = std::ranges::find_if(sum.partials, [&](const PartialSum& p) { return p.first >= node.first; });
    const auto last =
        std::find_if(first, sum.partials.end(), [&](const PartialSum& p) { return p.first >= node.last; });
    const std::span<const PartialSum> inside(first, last);
    if (inside.size() == 1) {
      nodes.push_back({node.first, node.last, inside[0].data + sum.begin});
    } else {
      sum_over_node(node, inside, sum.begin, sum.end, fold);
      nodes.push_back({node.first, node.last, fold});
      fold += elements;
    }
  });
}

// Sends every owner what this member has of its elements, and receives what the others have of its own.
void owners_reduce_scatter(Group& group, const Call& call, const ShardSum& sum) {
  GroupState& state = group.state();
  const int n = group.size(), index = group.index();
  const std::size_t elements = sum.end - sum.begin;
  const Range mine = part_of(index, n, elements, line);
  int foreign = 0;
  for (int m = 0; m < n; ++m) foreign += m == index ? 0 : nodes_of(m, n, sum.shards);
  const auto own_nodes = static_cast<std::size_t>(nodes_of(index, n, sum.shards));
  auto* scratch = reinterpret_cast<float*>(
      state.scratch((own_nodes * elements + static_cast<std::size_t>(foreign) * mine.count()) * sizeof(float)).data());
  float* arriving = scratch + own_nodes * elements;

  state.nodes.clear();
  fold_into_nodes(group, sum, state.nodes, scratch);
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
          {state.world.receive(state.rank(from), state.channel, call.label(step++), std::as_writable_bytes(into)),
           {},
           state.rank(from)});
      // Where the tree sum looks for element i there is element i of `mine`.
      state.partials.push_back({node.first, node.last, into.data() - mine.begin});
      arriving += mine.count();
    });
    const Range theirs = part_of(to, n, elements, line);
    step = 0;
    for (const PartialSum& node : state.nodes)
      state.sends.push_back({state.world.send(state.rank(to), state.channel, call.label(step++),
                                              std::as_bytes(std::span(node.data + theirs.begin, theirs.count()))),
                             {},
                             state.rank(to)});
  }
  for (PendingSend& r : state.receives) state.wait_policy.wait(r.work, r.peer);
  state.partials.insert(state.partials.end(), state.nodes.begin(), state.nodes.end());
  std::ranges::sort(state.partials, {}, &PartialSum::first);
  // `out` may be memory that is still being sent from; but never the elements that this member owns.
  sum_over_node({0, sum.shards}, state.partials, mine.begin, mine.end, sum.out + sum.begin + mine.begin);
  for (PendingSend& s : state.sends) state.wait_policy.wait(s.work, s.peer);
  state.sends.clear();
  state.receives.clear();
}

// --- recursive doubling
// -----------------------------------------------------------------------------------------------

void by_recursive_doubling(Group& group, const Call& call, const ShardSum& sum) {
  const ShardRange mine = shards_of(group.index(), group.size(), sum.shards);
  sum_over_node(mine, sum.partials, sum.begin, sum.end, sum.out + sum.begin);
  if (group.size() == 1) return;
  MoveRunner runner(group, call, typed_span(std::span(sum.out + sum.begin, sum.end - sum.begin)), Reduction::sum);
  recursive_doubling_all_reduce.plan(
      {.n = group.size(), .index = group.index(), .count = sum.end - sum.begin, .item = sizeof(float)}, runner);
  runner.finish();
}

}  // namespace

void all_reduce_members(Group& group, std::span<float> values) {
  const PartialSum mine{group.index(), group.index() + 1, values.data()};
  all_reduce_shards(group,
                    {.shards = group.size(), .partials = {&mine, 1}, .end = values.size(), .out = values.data()});
}

Range owned(int index, int n, std::size_t begin, std::size_t end) {
  const Range part = part_of(index, n, end - begin, line);
  return {begin + part.begin, begin + part.end};
}

void reduce_scatter_shards(Group& group, const ShardSum& sum, std::string_view name) {
  check(group, sum);
  Call call(group, OperationKind::reduce_scatter, ElementType::float32, Reduction::sum, sum.end - sum.begin, name);
  if (group.size() == 1) return sum_over_shards(sum.shards, sum.partials, sum.begin, sum.end, sum.out);
  if (all_visible(group, sum))
    direct_sum(group, sum, false);
  else
    owners_reduce_scatter(group, call, sum);
}

void all_gather_owned(Group& group, float* data, std::size_t begin, std::size_t end, std::string_view name) {
  all_gather(group, typed_span(std::span(data + begin, end - begin)), owned_parts(group, begin, end), name);
}

void all_reduce_shards(Group& group, const ShardSum& sum, const AllReduceOptions& how) {
  check(group, sum);
  const Algorithm* algorithm = how.algorithm;
  if (algorithm && !(algorithm->fixed_tree && algorithm->fixed_tree(group.size(), sum.shards)))
    bad_input(
        "all-reduce by '{}' does not add {} shards on {} ranks in the order of the fixed tree, so the result would "
        "depend on the number of ranks; use owners or direct",
        algorithm->name, sum.shards, group.size());
  {
    Call call(group, OperationKind::all_reduce, ElementType::float32, Reduction::sum, sum.end - sum.begin, how.name);
    if (group.size() == 1) return sum_over_shards(sum.shards, sum.partials, sum.begin, sum.end, sum.out);
    if (algorithm == &find_algorithm("recursive-doubling")) return by_recursive_doubling(group, call, sum);
    if (algorithm != &find_algorithm("owners") && all_visible(group, sum)) return direct_sum(group, sum, true);
    owners_reduce_scatter(group, call, sum);
  }
  const TypedSpan all = typed_span(std::span(sum.out + sum.begin, sum.end - sum.begin));
  Call call(group, OperationKind::all_gather, ElementType::float32, Reduction::sum, all.count, how.name);
  MoveRunner runner(group, call, all, Reduction::sum);
  const int n = group.size(), index = group.index();
  for (int k = 1; k < n; ++k) {
    const int to = (index + k) % n, from = (index + n - k) % n;
    runner.move({.to = to,
                 .out = part_of(index, n, all.count, line),
                 .from = from,
                 .in = part_of(from, n, all.count, line),
                 .step = k});
  }
  runner.finish();
}

Traffic owners_shard_traffic(int index, int n, int shards, std::size_t elements) {
  const auto nodes = static_cast<std::uint64_t>(nodes_of(index, n, shards)), others = static_cast<std::uint64_t>(n - 1);
  const std::size_t mine = part_of(index, n, elements, line).count();
  return {others * (nodes + 1), (nodes * (elements - mine) + others * mine) * sizeof(float)};
}

}  // namespace echelon
