// Packing for gemm_tile-inl.h: rearranges a block of a matrix so that the tile reads it as one stream. Compiled once
// per target (see simd-inl.h).

#if defined(ECHELON_KERNELS_GEMM_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_GEMM_PACK_INL_H
#undef ECHELON_KERNELS_GEMM_PACK_INL_H
#else
#define ECHELON_KERNELS_GEMM_PACK_INL_H
#endif

#include <algorithm>

#include "kernels/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// Four floats of a row and, where a vector has two halves, four of the row four further on.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_fours(Tag d, const float* HWY_RESTRICT from, std::int64_t row) {
  if constexpr (hn::MaxLanes(Tag()) == 4) {
    return hn::LoadU(d, from);
  } else {
    static_assert(hn::MaxLanes(Tag()) == 8);
    const hn::Half<Tag> half;
    return hn::Combine(d, hn::LoadU(half, from + 4 * row), hn::LoadU(half, from));
  }
}

// to[p * to_row + j] = from[j * from_row + p] for j < lanes, p < 4: a transposed block of 4 columns.
HWY_INLINE void transpose_block(const float* HWY_RESTRICT from, std::int64_t from_row, float* HWY_RESTRICT to,
                                std::int64_t to_row) {
  const D d;
  const hn::RepartitionToWide<D> d64;
  const V r0 = load_fours(d, from, from_row), r1 = load_fours(d, from + from_row, from_row);
  const V r2 = load_fours(d, from + 2 * from_row, from_row), r3 = load_fours(d, from + 3 * from_row, from_row);
  const auto lo01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
  const auto lo23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
  const auto hi01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
  const auto hi23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, lo01, lo23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, lo01, lo23)), d, to + to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, hi01, hi23)), d, to + 2 * to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, hi01, hi23)), d, to + 3 * to_row);
}

// One panel of B from b[k, columns]: rows are copied. Columns past the end are zeros, here and below.
HWY_INLINE void pack_panel(std::int64_t k, std::int64_t columns, const float* HWY_RESTRICT b, std::int64_t ldb,
                           float* HWY_RESTRICT to) {
  if (columns >= panel_width) {
    for (std::int64_t p = 0; p < k; ++p, b += ldb, to += panel_width) {
      hwy::Prefetch(b + 8 * ldb);
      hn::StoreU(hn::LoadU(D(), b), D(), to);
      hn::StoreU(hn::LoadU(D(), b + lanes), D(), to + lanes);
    }
  } else {
    for (std::int64_t p = 0; p < k; ++p, b += ldb, to += panel_width)
      for (std::int64_t j = 0; j < panel_width; ++j) to[j] = j < columns ? b[j] : 0.0f;
  }
}

// One panel of B from b[columns, k]: columns become rows.
HWY_INLINE void pack_panel_transposed(std::int64_t k, std::int64_t columns, const float* HWY_RESTRICT b,
                                      std::int64_t ldb, float* HWY_RESTRICT to) {
  // Rows that are a page apart push each other out of the first-level cache: of those, a whole line is used at a time.
  const std::int64_t piece = ldb % 512 == 0 ? 16 : 4, whole = columns >= panel_width ? k / 4 * 4 : 0;
  for (std::int64_t p = 0; p < whole; p += piece)
    for (std::int64_t half = 0; half < panel_width; half += lanes)
      for (std::int64_t q = p; q < std::min(p + piece, whole); q += 4)
        transpose_block(b + half * ldb + q, ldb, to + q * panel_width + half, panel_width);
  for (std::int64_t p = whole; p < k; ++p)
    for (std::int64_t j = 0; j < panel_width; ++j) to[p * panel_width + j] = j < columns ? b[j * ldb + p] : 0.0f;
}

// The strips of A from its transpose a[k, m]: strip by strip, for each k the strip's rows side by side.
HWY_INLINE void pack_strips(const Strips& strips, std::int64_t m, std::int64_t k, const float* HWY_RESTRICT a,
                            std::int64_t lda, float* HWY_RESTRICT to) {
  constexpr std::int64_t chunk = 8;  // rows of a at a time, so that their lines are used up while they are at hand
  for (std::int64_t p0 = 0; p0 < k; p0 += chunk) {
    const std::int64_t p1 = std::min(k, p0 + chunk);
    for (std::int64_t s = 0, i = 0; s < strips.count; i += strips.rows(s++)) {
      const std::int64_t rows = strips.rows(s);
      const float* HWY_RESTRICT from = a + p0 * lda + i;
      float* HWY_RESTRICT at = to + i * k + p0 * rows;
      // A whole vector is stored for fewer rows; what it spills is overwritten by the next k of the same strip.
      const bool whole = p1 < k && i + 8 <= m;
      for (std::int64_t p = p0; p < p1; ++p, from += lda, at += rows) {
        if (whole && lanes == 8) {
          hn::StoreU(hn::LoadU(D(), from), D(), at);
        } else {
          for (std::int64_t r = 0; r < rows; ++r) at[r] = from[r];
        }
      }
    }
  }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
