#include "collective/topology.h"

#include <algorithm>
#include <bit>
#include <map>

namespace echelon {

Range part_of(int i, int n, std::size_t count, std::size_t grain) {
  const std::size_t grains = (count + grain - 1) / grain;
  const auto at = [&](int k) {
    const auto parts = static_cast<std::size_t>(n), part = static_cast<std::size_t>(k);
    // grains * part / parts without the product, which could overflow
    return std::min(count, grain * (grains / parts * part + grains % parts * part / parts));
  };
  return {at(i), at(i + 1)};
}

int ceil_log2(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

int binomial_parent(int i) { return i & (i - 1); }

int binomial_span(int i, int n) {
  const int limit = i == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) : i & -i;
  return limit / 2;
}

namespace {

int lowest_bit(int p) { return p & -p; }

// The position above p in the infinite tree: of p's neighbours at twice its height, the one that it is below.
int position_above(int p) { return (p & ~lowest_bit(p)) | (lowest_bit(p) << 1); }

int parent_position(int p, int n) {
  if (p == static_cast<int>(std::bit_floor(static_cast<unsigned>(n)))) return 0;
  int q = position_above(p);
  while (q > n) q = position_above(q);  // a position beyond n is skipped: its left subtree hangs on its parent
  return q;
}

}  // namespace

TreeNode tree_node(int i, int n, int shift) {
  const auto member = [&](int position) { return (position - 1 + n - shift % n) % n; };
  const int p = (i + shift) % n + 1, half = lowest_bit(p) / 2;
  TreeNode node;
  if (const int q = parent_position(p, n)) node.parent = member(q);
  for (int q = p; (q = parent_position(q, n)) != 0;) ++node.depth;
  if (half > 0) {
    node.child[0] = member(p - half);
    // Right of p: the root of the existing positions in (p, p + 2 * half).
    for (int step = half; step > 0; step /= 2)
      if (p + step <= n) {
        node.child[1] = member(p + step);
        break;
      }
  }
  return node;
}

// The root's left subtree is complete, and no path is longer than one through it.
int tree_depth(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

Fold fold_of(int n) {
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  return {core, n - core};
}

HostTopology host_topology_of(std::span<const int> hosts, int index) {
  HostTopology topology;
  struct Host {
    int index, members;
  };
  std::map<int, Host> seen;
  const int own = hosts[static_cast<std::size_t>(index)];
  for (int m = 0; m < static_cast<int>(hosts.size()); ++m) {
    const int host = hosts[static_cast<std::size_t>(m)];
    const auto [it, first] = seen.try_emplace(host, Host{static_cast<int>(topology.leaders.size()), 0});
    if (first) topology.leaders.push_back(m);
    topology.most_local = std::max(topology.most_local, ++it->second.members);
    if (host != own) continue;
    if (m == index) topology.local_index = static_cast<int>(topology.local.size());
    topology.local.push_back(m);
  }
  topology.host_index = seen.at(own).index;
  return topology;
}

}  // namespace echelon
