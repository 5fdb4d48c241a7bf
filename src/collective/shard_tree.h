#pragma once
// The sum over logical shards, always in the same binary tree, whoever holds the leaves (law 1). The tree over shards
// [lo, hi) splits at the largest power of two below its size; a leaf is one shard's contribution.
//
// A core that runs several neighbouring shards adds up what it can on the way (`ShardReducer`): it keeps one partial
// sum per complete subtree, at most one per level. Afterwards `sum_over_shards` combines the partial sums of all cores
// over any range of elements; ranges are independent, so the cores share that work. Functions are thread-safe on
// distinct ranges; a ShardReducer belongs to one core.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/tree.h"

namespace echelon {

// A sum over the shards [first, last), which are the leaves of one node of the tree.
struct PartialSum {
  int first = 0, last = 0;
  const float* data = nullptr;
};

// The shards of one of n ranks, or of one of a rank's n cores: neighbours, so that it can compute most of their sum by
// itself; possibly none if there are fewer shards than ranks.
struct ShardRange {
  int first = 0, last = 0;
  int stride = 1;  // every shard of them, or every second one ...
  int count() const { return (last - first + stride - 1) / stride; }
  bool contains(int shard) const { return shard >= first && shard < last && (shard - first) % stride == 0; }
};
ShardRange shards_of(int index, int n, int shards);
// Whether the shards [first, last) are exactly the leaves of one node of the tree over [lo, hi).
bool is_tree_node(int lo, int hi, int first, int last);

// Calls f(ShardRange) for each of the fewest tree nodes whose leaves are the shards `range`, from the left: at most two
// per level.
template <typename F>
void for_each_tree_node(int lo, int hi, ShardRange range, const F& f) {
  if (range.first >= range.last || hi <= range.first || lo >= range.last) return;
  if (range.first <= lo && hi <= range.last) return f(ShardRange{lo, hi});
  const int mid = tree_split(lo, hi);
  for_each_tree_node(lo, mid, range, f);
  for_each_tree_node(mid, hi, range, f);
}

class ShardReducer {
 public:
  // For the shards [first, last) of `shards`, contributing `floats` numbers each, in that order or in the one given:
  // the sums are the same bits in any, and the more sums are begun at once, the more memory it takes. `memory` has
  // `memory_bytes(...)` bytes and outlives the reducer; a rank that sees the same memory can make a reducer on it to
  // learn where the sums lie.
  ShardReducer(int shards, int first, int last, std::size_t floats, std::span<std::byte> memory,
               std::span<const int> order = {});
  static std::size_t memory_bytes(int shards, int first, int last, std::size_t floats, std::span<const int> order = {});

  // Where the next shard is to write its contribution.
  std::span<float> contribution() const { return contribution_; }
  void start_step() { next_ = 0; }
  void fold();  // the next shard's contribution is complete: adds it to the partial sums
  // The same in parts: fold_part for every range of elements, then end_shard.
  void fold_part(std::size_t begin, std::size_t end) { fold_turn(next_, begin, end); }
  void end_shard() { ++next_; }
  // The same for a shard by its number: every range of elements sees all shards, in their order.
  void fold_part(int shard, std::size_t begin, std::size_t end) {
    fold_turn(static_cast<std::size_t>(shard - first_), begin, end);
  }

  // The sums after the last shard: always in the same places.
  std::span<const PartialSum> partial_sums() const { return partials_; }
  // Places that hold none of them at the end, while shards come in their order: for sums on the way.
  std::span<const std::span<float>> inner_places() const {
    return std::span(levels_).subspan(std::min(levels_.size(), partials_.size()));
  }
  // The memory of one of them: a place for the sum over all shards.
  std::span<float> total() { return levels_.empty() ? contribution_ : levels_[total_]; }

 private:
  void fold_turn(std::size_t turn, std::size_t begin, std::size_t end);

  int first_;
  std::size_t next_ = 0, total_ = 0;  // the next shard's turn; which level the total is
  std::span<float> contribution_;
  std::vector<std::span<float>> levels_;         // places for partial sums
  std::vector<std::vector<std::size_t>> joins_;  // by turn: places of the sums that it completes, the smallest first
  std::vector<std::size_t> places_;              // by turn: where it is kept if it completes none
  std::vector<PartialSum> partials_;
};

// out[i] = the tree sum for every i in [begin, end). `partials` cover the shards [0, shards) in order. `out` may be the
// memory of any of them.
void sum_over_shards(int shards, std::span<const PartialSum> partials, std::size_t begin, std::size_t end, float* out);

// The same for one node of the tree, whose shards `partials` cover. `out` begins at element `begin`.
void sum_over_node(ShardRange node, std::span<const PartialSum> partials, std::size_t begin, std::size_t end,
                   float* out);

}  // namespace echelon
