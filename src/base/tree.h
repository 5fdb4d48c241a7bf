#pragma once
// The one binary tree in which numbers are added up whenever several parties hold them: logical shards of a batch
// (collective/shard_tree.h), slices of a layer (graph/ops/slices.h). Pure function.

#include <bit>

namespace echelon {

// Where the tree over the leaves [lo, hi) splits: at the largest power of two below its size. hi - lo > 1.
constexpr int tree_split(int lo, int hi) {
  return lo + static_cast<int>(std::bit_floor(static_cast<unsigned>(hi - lo - 1)));
}

}  // namespace echelon
