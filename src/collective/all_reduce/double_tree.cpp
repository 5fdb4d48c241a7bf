// Double binary tree (Sanders, Speck and Traff, Parallel Computing 35, 2009): two binary trees carry half of the
// data each, up and down, in a pipeline of chunks. A member with children in one tree is a leaf in the
// other, so all links work all the time: nearly the ring's bytes at the tree's depth.
//   messages (edges in both trees) * chunks    bytes (edges) * B/2
//   time (2 log2 n + chunks) ticks of four messages of a chunk each way

#include <algorithm>

#include "collective/algorithms.h"

namespace echelon {

namespace {

constexpr std::size_t chunk_bytes = 32 * 1024;  // short enough that no world waits for the receiver before it sends

int chunks_of(std::size_t bytes) {
  return static_cast<int>(std::max<std::size_t>(1, (bytes + chunk_bytes - 1) / chunk_bytes));
}

// One member in one of the trees, which carries half of the data.
struct TreeHalf {
  TreeNode node;
  Range range;
  int chunks;

  Range chunk(int k) const {
    const Range r = part_of(k, chunks, range.count());
    return {range.begin + r.begin, range.begin + r.end};
  }
};

TreeHalf tree_half(const AllReduceShape& c, int which) {
  const Range range = part_of(which, 2, c.count);
  return {tree_node(c.index, c.n, which), range, chunks_of(range.count() * c.item)};
}

// All members follow one clock of ticks: what a member sends at a tick is received at the next. A chunk rises one level
// per tick, turns around at the root and sinks one level per tick; the next chunk follows one tick later.
void plan_double_tree(const AllReduceShape& c, TransferRunner& runner) {
  const TreeHalf half[2] = {tree_half(c, 0), tree_half(c, 1)};
  const int top = tree_depth(c.n), most = std::max(half[0].chunks, half[1].chunks);
  for (int tick = 0; tick < most + 2 * top; ++tick) {
    for (int h = 0; h < 2; ++h) {
      const int k = tick - (top - half[h].node.depth);
      if (k < 0 || k >= half[h].chunks) continue;
      const Range range = half[h].chunk(k);
      const int step = 4 * k + h;
      for (const int child : half[h].node.child)
        if (child >= 0) runner.run({.from = child, .in = range, .reduce = true, .step = step});
      if (half[h].node.parent >= 0) runner.run({.to = half[h].node.parent, .out = range, .step = step});
    }
    for (int h = 0; h < 2; ++h) {
      const int k = tick - top - half[h].node.depth;
      if (k < 0 || k >= half[h].chunks) continue;
      const Range range = half[h].chunk(k);
      const int step = 4 * k + 2 + h;
      if (half[h].node.parent >= 0) runner.run({.from = half[h].node.parent, .in = range, .step = step});
      for (const int child : half[h].node.child)
        if (child >= 0) runner.run({.to = child, .out = range, .step = step});
    }
  }
}

MemberTraffic double_tree_traffic(const AllReduceShape& c) {
  MemberTraffic sum;
  if (c.n == 1) return sum;
  for (int which = 0; which < 2; ++which) {
    const TreeHalf half = tree_half(c, which);
    const auto edges = static_cast<std::uint64_t>(half.node.degree());
    sum.messages += edges * static_cast<std::uint64_t>(half.chunks);
    sum.bytes += edges * half.range.count() * c.item;
  }
  return sum;
}

double double_tree_seconds(double bytes, int n, const LinkCosts& l) {
  const int chunks = chunks_of(static_cast<std::size_t>(bytes / 2));
  const double chunk = bytes / 2 / chunks;
  // At every tick a member sends and receives four chunks, two of which it combines.
  const double tick = l.latency + 4 * chunk * l.per_byte + 2 * chunk * l.combine_per_byte;
  return (chunks + 2 * tree_depth(n)) * tick;
}

}  // namespace

Algorithm double_tree_all_reduce() {
  return {.name = "double-tree",
          .about = "two complementary binary trees (Sanders, Speck and Traff 2009)",
          .plan = plan_double_tree,
          .traffic = double_tree_traffic,
          .seconds = double_tree_seconds};
}

}  // namespace echelon
