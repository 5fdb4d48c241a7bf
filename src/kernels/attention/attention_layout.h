#pragma once
// The scratch of attention: packed copies of one head's matrices, and the scores of one block of queries.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm_blocks.h"

namespace echelon::kernels {

inline float scale_of(const AttentionShape& s) {
  return s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<float>(s.dim));
}

constexpr std::int64_t score_margin = 16;  // floats past the end of a row that tiles may touch
inline std::int64_t score_row(const AttentionShape& s) { return round_up(s.keys, 16) + score_margin; }

// Queries at a time. Forward: a panel of keys is used for eight strips while it is in the first-level cache. Backward:
// more, because the keys' gradients are summed over the block's queries; two blocks of scores take 256 KiB.
inline std::int64_t forward_block(const AttentionShape& s) { return even_piece(s.queries, 48, 6); }
inline std::int64_t backward_block(const AttentionShape& s) {
  return even_piece(s.queries, std::clamp<std::int64_t>(32768 / score_row(s), 48, 192), 6);
}

struct AttentionScratch {
  AttentionScratch(const AttentionShape& s, float* base)
      : by_key(round_up(s.keys, panel_unit) * s.dim),
        by_dim(round_up(s.dim, panel_unit) * std::max(s.keys, s.queries)),
        block(std::max(forward_block(s), backward_block(s)) * score_row(s)),
        base(base) {}
  // All matrices have room for a whole number of panels, and start on a cache line.
  float* keys_transposed() const { return base; }
  float* values_transposed() const { return base + by_key; }
  float* rows(int which) const { return base + 2 * by_key + which * by_dim; }  // 0, 1, 2: packed over dim
  float* scores(int which) const { return base + 2 * by_key + 3 * by_dim + which * round_up(block, 16); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(2 * by_key + 3 * by_dim + 2 * round_up(block, 16)) * sizeof(float);
  }

  std::int64_t by_key, by_dim, block;
  float* base;
};

}  // namespace echelon::kernels
