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

bool is_tree_node(int lo, int hi, int first, int last) {
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

namespace {

// How contributions are added up as they come: with each the sums that it completes, smallest first.
struct ReductionSchedule {
  struct Sum {
    int first, last;
    std::size_t place;
  };
  std::vector<Sum> sums;                        // over complete subtrees, those that are left at the end
  std::size_t places = 0;                       // sums held at once
  std::vector<std::vector<std::size_t>> joins;  // by turn
  std::vector<std::size_t> kept;                // by turn: where it is put if it joins none

  std::size_t free_place(std::size_t from) const {
    for (std::size_t p = from;; ++p)
      if (std::ranges::find(sums, p, &Sum::place) == sums.end()) return p;
  }
};

ReductionSchedule reduction_schedule(int shards, int first, int last, std::span<const int> order) {
  ReductionSchedule f;
  // In the shards' own order, a sum that is left at the end has a place of its own from its first shard on.
  std::vector<int> firsts;
  if (order.empty())
    for_each_tree_node(0, shards, {first, last}, [&](ShardRange node) { firsts.push_back(node.first); });
  for (int turn = 0; turn < last - first; ++turn) {
    const int s = order.empty() ? first + turn : order[static_cast<std::size_t>(turn)];
    ReductionSchedule::Sum sum{s, s + 1, 0};
    auto& joins = f.joins.emplace_back();
    const auto sibling = [&](const ReductionSchedule::Sum& other) {
      return (other.last == sum.first && is_tree_node(0, shards, other.first, sum.last)) ||
             (sum.last == other.first && is_tree_node(0, shards, sum.first, other.last));
    };
    for (auto it = f.sums.begin(); (it = std::ranges::find_if(f.sums, sibling)) != f.sums.end(); f.sums.erase(it)) {
      joins.push_back(it->place);
      sum = {std::min(sum.first, it->first), std::max(sum.last, it->last), it->place};
    }
    if (joins.empty()) {
      const auto own = std::ranges::find(firsts, s);
      sum.place = own != firsts.end() ? static_cast<std::size_t>(own - firsts.begin()) : f.free_place(firsts.size());
    }
    f.kept.push_back(sum.place);
    f.sums.push_back(sum);
    f.places = std::max(f.places, sum.place + 1);
  }
  std::ranges::sort(f.sums, {}, &ReductionSchedule::Sum::first);
  return f;
}

std::size_t aligned_floats(std::size_t floats) { return aligned(floats * sizeof(float)) / sizeof(float); }

// A single contribution stays where the shard wrote it; sums need memory of their own.
std::size_t levels_for(const ReductionSchedule& f) { return f.joins.size() > 1 ? f.places : 0; }

}  // namespace

std::size_t ShardReducer::memory_bytes(int shards, int first, int last, std::size_t floats,
                                       std::span<const int> order) {
  return (1 + levels_for(reduction_schedule(shards, first, last, order))) * aligned_floats(floats) * sizeof(float);
}

ShardReducer::ShardReducer(int shards, int first, int last, std::size_t floats, std::span<std::byte> memory,
                           std::span<const int> order)
    : first_(first) {
  invariant(memory.size() >= memory_bytes(shards, first, last, floats, order),
            "a shard reducer has the memory it needs");
  auto* at = reinterpret_cast<float*>(memory.data());
  ReductionSchedule f = reduction_schedule(shards, first, last, order);
  contribution_ = {at, floats};
  for (std::size_t i = 0; i < levels_for(f); ++i) levels_.emplace_back(at += aligned_floats(floats), floats);
  joins_ = std::move(f.joins);
  places_ = std::move(f.kept);
  for (const auto& sum : f.sums)
    partials_.push_back({sum.first, sum.last, levels_.empty() ? contribution_.data() : levels_[sum.place].data()});
  if (!levels_.empty()) total_ = f.sums.front().place;
}

void ShardReducer::fold_turn(std::size_t turn, std::size_t begin, std::size_t end) {
  if (levels_.empty()) return;  // a single shard: its contribution is the sum
  const float* sum = contribution_.data() + begin;
  for (const std::size_t place : joins_[turn]) {
    float* into = levels_[place].data() + begin;
    kernels::add(into, into, sum, end - begin);
    sum = into;
  }
  if (joins_[turn].empty()) kernels::copy(levels_[places_[turn]].data() + begin, sum, end - begin);
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
