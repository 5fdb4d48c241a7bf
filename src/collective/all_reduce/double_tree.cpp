// Double binary tree (Sanders, Speck and Traff, Parallel Computing 35, 2009): two binary trees carry half of the
// numbers each, up and down, in chunks that follow each other. A member with children in one tree is a leaf in the
// other, so all links work all the time: nearly the ring's bytes at the tree's depth.
//   messages (edges in both trees) * chunks    bytes (edges) * B/2
//   time (2 log2 n + chunks) steps of three messages of a chunk each way

#include <algorithm>

#include "collective/algorithms.h"

namespace echelon {

namespace {

constexpr std::size_t chunk_bytes = 128 * 1024;

int chunks_of(std::size_t bytes) {
  return static_cast<int>(std::max<std::size_t>(1, (bytes + chunk_bytes - 1) / chunk_bytes));
}

struct Half {
  TreeNode node;
  Range range;
  int chunks;

  Range chunk(int k) const {
    const Range r = part_of(k, chunks, range.count());
    return {range.begin + r.begin, range.begin + r.end};
  }
};

Half half_of(const Case& c, int which) {
  const Range range = part_of(which, 2, c.count);
  return {tree_node(c.index, c.n, which), range, chunks_of(range.count() * c.item)};
}

void plan(const Case& c, Mover& mover) {
  const Half half[2] = {half_of(c, 0), half_of(c, 1)};
  // Results come back this many chunks later than their parts went up; until then more parts can go up.
  const int behind = 2 * tree_depth(c.n), most = std::max(half[0].chunks, half[1].chunks);
  for (int t = 0; t < most + behind; ++t) {
    for (int h = 0; h < 2; ++h) {
      if (t >= half[h].chunks) continue;
      const Range range = half[h].chunk(t);
      const int step = 4 * t + h;
      for (const int child : half[h].node.child)
        if (child >= 0) mover.move({.from = child, .in = range, .reduce = true, .step = step});
      if (half[h].node.parent >= 0) mover.move({.to = half[h].node.parent, .out = range, .step = step});
    }
    for (int h = 0; h < 2; ++h) {
      const int k = t - behind;
      if (k < 0 || k >= half[h].chunks) continue;
      const Range range = half[h].chunk(k);
      const int step = 4 * k + 2 + h;
      if (half[h].node.parent >= 0) mover.move({.from = half[h].node.parent, .in = range, .step = step});
      for (const int child : half[h].node.child)
        if (child >= 0) mover.move({.to = child, .out = range, .step = step});
    }
  }
}

Traffic traffic(const Case& c) {
  Traffic sum;
  if (c.n == 1) return sum;
  for (int which = 0; which < 2; ++which) {
    const Half half = half_of(c, which);
    const auto edges = static_cast<std::uint64_t>(half.node.degree());
    sum.messages += edges * static_cast<std::uint64_t>(half.chunks);
    sum.bytes += edges * half.range.count() * c.item;
  }
  return sum;
}

double seconds(double bytes, int n, const Link& l) {
  const int chunks = chunks_of(static_cast<std::size_t>(bytes / 2));
  const double chunk = bytes / 2 / chunks;
  // In every round a member sends and receives up to three chunks; the first one has to get to the root and back.
  const double round = 3 * (l.latency + chunk * l.per_byte) + 2 * chunk * l.combine_per_byte;
  return (chunks + 2 * tree_depth(n) - 1) * round;
}

}  // namespace

const Algorithm double_tree_all_reduce{.name = "double-tree",
                                       .about = "two complementary binary trees (Sanders, Speck and Traff 2009)",
                                       .plan = plan,
                                       .traffic = traffic,
                                       .seconds = seconds};

}  // namespace echelon
