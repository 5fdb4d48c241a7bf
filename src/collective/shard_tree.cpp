#include "collective/shard_tree.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.h"
#include "kernels/vector.h"
#include "tensor/buffer.h"

namespace echelon {

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

// The schedule by which the shards [first, last) are added up from the left.
struct ReductionSchedule {
  std::vector<std::pair<int, int>> stack;  // the sums over complete subtrees that are left at the end
  std::vector<int> joins;                  // by shard: how many sums on its left it completes
};

ReductionSchedule reduction_schedule(int shards, int first, int last) {
  ReductionSchedule f;
  for (int s = first; s < last; ++s) {
    f.stack.push_back({s, s + 1});
    f.joins.push_back(0);
    while (f.stack.size() > 1 && is_node(0, shards, f.stack[f.stack.size() - 2].first, f.stack.back().second)) {
      f.stack[f.stack.size() - 2].second = f.stack.back().second;
      f.stack.pop_back();
      ++f.joins.back();
    }
  }
  return f;
}

std::size_t aligned_floats(std::size_t floats) { return aligned(floats * sizeof(float)) / sizeof(float); }

// A shard that completes no sum on its left is copied to the next free level; the others are added to a level. A single
// shard stays where it was written.
std::size_t levels_for(const ReductionSchedule& f) {
  if (f.joins.size() <= 1) return 0;
  int held = 0, most = 0;
  for (const int joins : f.joins) most = std::max(most, held += 1 - joins);
  return static_cast<std::size_t>(most);
}

}  // namespace

std::size_t ShardReducer::memory_bytes(int shards, int first, int last, std::size_t floats) {
  return (1 + levels_for(reduction_schedule(shards, first, last))) * aligned_floats(floats) * sizeof(float);
}

ShardReducer::ShardReducer(int shards, int first, int last, std::size_t floats, std::span<std::byte> memory)
    : first_(first), next_(first) {
  invariant(memory.size() >= memory_bytes(shards, first, last, floats), "a shard reducer has the memory it needs");
  auto* at = reinterpret_cast<float*>(memory.data());
  const ReductionSchedule f = reduction_schedule(shards, first, last);
  contribution_ = {at, floats};
  for (std::size_t i = 0; i < levels_for(f); ++i) levels_.emplace_back(at += aligned_floats(floats), floats);
  int held = 0;
  for (int joins : f.joins) {
    held -= joins;
    steps_.push_back({joins, held++});
  }
  for (std::size_t i = 0; i < f.stack.size(); ++i)
    partials_.push_back(
        {f.stack[i].first, f.stack[i].second, levels_.empty() ? contribution_.data() : levels_[i].data()});
}

void ShardReducer::fold_part(std::size_t begin, std::size_t end) { fold_part(next_, begin, end); }

void ShardReducer::fold_part(int shard, std::size_t begin, std::size_t end) {
  if (levels_.empty()) return;  // a single shard: its contribution is the sum
  const auto [joins, place] = steps_[static_cast<std::size_t>(shard - first_)];
  const float* sum = contribution_.data() + begin;
  for (int left = place + joins - 1; left >= place; --left) {
    float* into = levels_[static_cast<std::size_t>(left)].data() + begin;
    kernels::add(into, into, sum, end - begin);
    sum = into;
  }
  if (joins == 0) kernels::copy(levels_[static_cast<std::size_t>(place)].data() + begin, sum, end - begin);
}

void ShardReducer::fold() {
  fold_part(0, contribution_.size());
  end_shard();
}

namespace {

constexpr std::size_t sum_block_floats = 2048;  // a few such blocks fit the first-level cache

// The tree over [lo, hi) on one sum_block_floats; `partials` are those within it. Returns where the result lies: in one
// of the partial sums itself, or in `out`.
const float* sum_block(int lo, int hi, std::span<const PartialSum> partials, std::size_t at, std::size_t n,
                       float* out) {
  if (partials.size() == 1) return partials[0].data + at;
  const int mid = tree_split(lo, hi);
  const auto cut = std::ranges::find_if(partials, [&](const PartialSum& p) { return p.first >= mid; });
  const auto left_count = static_cast<std::size_t>(cut - partials.begin());
  std::array<float, sum_block_floats> room;
  const float* left = sum_block(lo, mid, partials.first(left_count), at, n, room.data());
  std::array<float, sum_block_floats> other;
  const float* right = sum_block(mid, hi, partials.subspan(left_count), at, n, other.data());
  kernels::add(out, left, right, n);
  return out;
}

}  // namespace

void sum_over_node(ShardRange node, std::span<const PartialSum> partials, std::size_t begin, std::size_t end,
                   float* out) {
  invariant(!partials.empty() && partials.front().first == node.first && partials.back().last == node.last,
            "the partial sums cover the node");
  for (std::size_t at = begin; at < end; at += sum_block_floats) {
    const std::size_t n = std::min(sum_block_floats, end - at);
    float* to = out + (at - begin);
    const float* sum = sum_block(node.first, node.last, partials, at, n, to);
    if (sum != to) kernels::copy(to, sum, n);
  }
}

void sum_over_shards(int shards, std::span<const PartialSum> partials, std::size_t begin, std::size_t end, float* out) {
  sum_over_node({0, shards}, partials, begin, end, out + begin);
}

}  // namespace echelon
