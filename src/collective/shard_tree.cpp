#include "collective/shard_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/error.h"
#include "kernels/vector.h"

namespace echelon {

int tree_split(int lo, int hi) { return lo + static_cast<int>(std::bit_floor(static_cast<unsigned>(hi - lo - 1))); }

ShardRange shards_of(int index, int n, int shards) {
  const auto at = [&](int i) { return static_cast<int>(std::int64_t{i} * shards / n); };
  return {at(index), at(index + 1)};
}

namespace {

// Whether [first, last) are exactly the leaves of one node of the tree over [lo, hi).
bool is_node(int lo, int hi, int first, int last) {
  while (lo != first || hi != last) {
    if (hi - lo <= 1) return false;
    const int mid = tree_split(lo, hi);
    if (last <= mid)
      hi = mid;
    else if (first >= mid)
      lo = mid;
    else
      return false;
  }
  return true;
}

// How many partial sums are held at most while [first, last) is folded from the left.
std::size_t most_partials(int shards, int first, int last) {
  std::vector<std::pair<int, int>> stack;
  std::size_t most = 0;
  for (int s = first; s < last; ++s) {
    stack.push_back({s, s + 1});
    most = std::max(most, stack.size());
    while (stack.size() > 1 && is_node(0, shards, stack[stack.size() - 2].first, stack.back().second)) {
      stack[stack.size() - 2].second = stack.back().second;
      stack.pop_back();
    }
  }
  return most;
}

}  // namespace

bool is_tree_node(int shards, int first, int last) { return first < last && is_node(0, shards, first, last); }

ShardFolder::ShardFolder(int shards, int first, int last, std::size_t floats)
    : shards_(shards), first_(first), next_(first), contribution_(floats * sizeof(float)) {
  // The newest leaf stays where the shard wrote it; older partial sums need places of their own. A range that is a
  // single shard needs none.
  if (last - first > 1)
    for (std::size_t i = 0; i < most_partials(shards, first, last); ++i) levels_.emplace_back(floats * sizeof(float));
  partials_.reserve(levels_.size() + 1);
}

void ShardFolder::start_step() {
  next_ = first_;
  partials_.clear();
}

void ShardFolder::fold() {
  const std::size_t n = contribution_.as<float>().size();
  PartialSum leaf{next_, next_ + 1, contribution_.as<float>().data()};
  ++next_;
  if (levels_.empty()) {
    partials_.push_back(leaf);
    return;
  }
  // Join with the sums to the left as long as both make up one node. The result is written over the left one.
  while (!partials_.empty() && is_node(0, shards_, partials_.back().first, leaf.last)) {
    float* left = levels_[partials_.size() - 1].as<float>().data();
    kernels::add(left, left, leaf.data, n);
    leaf = {partials_.back().first, leaf.last, left};
    partials_.pop_back();
  }
  float* place = levels_[partials_.size()].as<float>().data();
  if (leaf.data != place) kernels::copy(place, leaf.data, n);
  leaf.data = place;
  partials_.push_back(leaf);
}

std::size_t ShardFolder::bytes() const {
  std::size_t sum = contribution_.bytes();
  for (const Buffer& b : levels_) sum += b.bytes();
  return sum;
}

namespace {

constexpr std::size_t block = 2048;  // floats: a few blocks fit the first-level cache

// The tree over [lo, hi) on one block; `partials` are those within it. Returns where the result lies: in one of the
// partial sums itself, or in `out`.
const float* sum_block(int lo, int hi, std::span<const PartialSum> partials, std::size_t at, std::size_t n,
                       float* out) {
  if (partials.size() == 1) return partials[0].data + at;
  const int mid = tree_split(lo, hi);
  const auto cut = std::ranges::find_if(partials, [&](const PartialSum& p) { return p.first >= mid; });
  const auto left_count = static_cast<std::size_t>(cut - partials.begin());
  std::array<float, block> room;
  const float* left = sum_block(lo, mid, partials.first(left_count), at, n, room.data());
  std::array<float, block> other;
  const float* right = sum_block(mid, hi, partials.subspan(left_count), at, n, other.data());
  kernels::add(out, left, right, n);
  return out;
}

}  // namespace

void sum_over_node(ShardRange node, std::span<const PartialSum> partials, std::size_t begin, std::size_t end,
                   float* out) {
  invariant(!partials.empty() && partials.front().first == node.first && partials.back().last == node.last,
            "the partial sums cover the node");
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t n = std::min(block, end - at);
    float* to = out + (at - begin);
    const float* sum = sum_block(node.first, node.last, partials, at, n, to);
    if (sum != to) kernels::copy(to, sum, n);
  }
}

void sum_over_shards(int shards, std::span<const PartialSum> partials, std::size_t begin, std::size_t end, float* out) {
  sum_over_node({0, shards}, partials, begin, end, out + begin);
}

}  // namespace echelon
