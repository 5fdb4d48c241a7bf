#include "kernels/tree_sum.h"

#include <algorithm>
#include <array>

#include "base/tree.h"
#include "kernels/vector.h"

namespace echelon::kernels {

namespace {

// Small enough that the sums below a node stay in the first-level cache.
constexpr std::size_t block_floats = 1024;

// The sum over a block of the tree's leaves `in`: in `room`, or where it lies already if there is one leaf.
const float* sum_leaves(std::span<const float* const> in, std::size_t at, std::size_t n, float* room) {
  if (in.size() == 1) return in[0] + at;
  const auto mid = static_cast<std::size_t>(tree_split(0, static_cast<int>(in.size())));
  std::array<float, block_floats> other;
  const float* left = sum_leaves(in.first(mid), at, n, room);
  const float* right = sum_leaves(in.subspan(mid), at, n, other.data());
  add(room, left, right, n);
  return room;
}

}  // namespace

void tree_sum(std::span<const float* const> in, float* out, std::size_t n) {
  if (in.size() == 1) return copy(out, in[0], n);
  const auto mid = static_cast<std::size_t>(tree_split(0, static_cast<int>(in.size())));
  for (std::size_t at = 0; at < n; at += block_floats) {
    const std::size_t count = std::min(block_floats, n - at);
    std::array<float, block_floats> left_room, right_room;
    const float* left = sum_leaves(in.first(mid), at, count, left_room.data());
    const float* right = sum_leaves(in.subspan(mid), at, count, right_room.data());
    add(out + at, left, right, count);  // nothing is written before all of the block has been read
  }
}

}  // namespace echelon::kernels
