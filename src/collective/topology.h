#pragma once
// Who talks to whom: arithmetic on member numbers 0..n-1, without a world. Every algorithm is built from these. Pure
// functions, thread-safe.

#include <cstddef>
#include <span>
#include <vector>

namespace echelon {

struct Range {  // of elements
  std::size_t begin = 0, end = 0;
  std::size_t count() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Part i of n of `count` elements: contiguous, in order, sizes that differ by at most one `grain`. With the elements of
// a cache line as grain no two members write to the same line.
Range part_of(int i, int n, std::size_t count, std::size_t grain = 1);

int ceil_log2(int n);  // 0 for 1, 3 for 5..8

// A binomial tree with root 0: the parent of i is i without its lowest set bit. i's children are i + 2^k for every 2^k
// below that bit (for the root: any), as long as they exist.
int binomial_parent(int i);
int binomial_span(int i, int n);  // 2^k for the largest k that could give i a child; 0 if none could

// A binary tree over the positions 1..n in order (the left subtree has smaller, the right one larger positions): odd
// positions are leaves. Two of them, shifted by one, make every member a leaf in at least one: the double binary tree.
struct TreeNode {
  int parent = -1;          // -1: the root
  int depth = 0;            // edges to the root
  int child[2] = {-1, -1};  // -1: none
  int degree() const { return (parent >= 0) + (child[0] >= 0) + (child[1] >= 0); }
};
TreeNode tree_node(int i, int n, int shift);  // in member numbers: position = (i + shift) mod n + 1
int tree_depth(int n);                        // edges between the root and the farthest leaf

// Algorithms that need a power of two: the first 2 * extra members form pairs, of which the odd member takes part for
// both and the even one sits out.
struct Fold {
  int core = 1;   // the largest power of two that is at most n
  int extra = 0;  // n - core
  bool sits_out(int i) const { return i < 2 * extra && i % 2 == 0; }
  int core_index(int i) const { return i < 2 * extra ? i / 2 : i - extra; }  // of one that takes part
  int member(int core_index) const { return core_index < extra ? 2 * core_index + 1 : core_index + extra; }
};
Fold fold_of(int n);

// Which members share a host, as seen by one member.
struct HostTopology {
  std::vector<int> local;    // the members on its host, in order
  std::vector<int> leaders;  // the first member of each host, in order of members
  int local_index = 0;       // of this member in `local`
  int host_index = 0;        // of its host in `leaders`
  int most_local = 1;        // members on the host that has most
};
HostTopology host_topology_of(std::span<const int> hosts, int index);  // hosts[i]: the host of member i

}  // namespace echelon
