// Packing for gemm_tile-inl.h: rearranges a block of a matrix so that the tile reads it as one stream. Compiled once
// per target (see simd-inl.h).

#if defined(ECHELON_KERNELS_GEMM_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_GEMM_PACK_INL_H
#undef ECHELON_KERNELS_GEMM_PACK_INL_H
#else
#define ECHELON_KERNELS_GEMM_PACK_INL_H
#endif

#include <algorithm>

#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// Four floats of a row and, where a vector has more, four of the row four further on, and so on.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_fours(Tag d, const float* HWY_RESTRICT from, std::int64_t row) {
  if constexpr (hn::MaxLanes(Tag()) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<Tag> half;
    constexpr std::int64_t rows = hn::MaxLanes(half);
    return hn::Combine(d, load_fours(half, from + rows * row, row), load_fours(half, from, row));
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

// to[p * to_row + j] = from[j * from_row + p] for j, p < 16, where vectors have 16 numbers. Every row is read once and
// as a whole: rows that are a page apart push each other out of the first-level cache.
template <class Tag>
HWY_INLINE void transpose_square(Tag d, const float* HWY_RESTRICT from, std::int64_t from_row, float* HWY_RESTRICT to,
                                 std::int64_t to_row) {
  const hn::RepartitionToWide<Tag> d64;
  using Vec = hn::Vec<Tag>;
  Vec t[4][4];  // of rows 4 g ... : t[g][c] has, for each block of four numbers, number c of these rows
  unrolled<4>([&](auto g) HWY_ATTR {
    const float* HWY_RESTRICT row = from + 4 * g * from_row;
    const Vec r0 = hn::LoadU(d, row), r1 = hn::LoadU(d, row + from_row);
    const Vec r2 = hn::LoadU(d, row + 2 * from_row), r3 = hn::LoadU(d, row + 3 * from_row);
    const auto lo01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
    const auto lo23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
    const auto hi01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
    const auto hi23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
    t[g][0] = hn::BitCast(d, hn::InterleaveLower(d64, lo01, lo23));
    t[g][1] = hn::BitCast(d, hn::InterleaveUpper(d64, lo01, lo23));
    t[g][2] = hn::BitCast(d, hn::InterleaveLower(d64, hi01, hi23));
    t[g][3] = hn::BitCast(d, hn::InterleaveUpper(d64, hi01, hi23));
  });
  unrolled<4>([&](auto c) HWY_ATTR {  // the same with the blocks: block b of all four goes to row 4 b + c
    const auto store_two = [&](Vec even, Vec odd, std::int64_t b) HWY_ATTR {
      hn::StoreU(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even), d, to + (4 * b + c) * to_row);
      hn::StoreU(hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)), d, to + (4 * b + 4 + c) * to_row);
    };
    store_two(hn::ConcatLowerLower(d, t[2][c], t[0][c]), hn::ConcatLowerLower(d, t[3][c], t[1][c]), 0);
    store_two(hn::ConcatUpperUpper(d, t[2][c], t[0][c]), hn::ConcatUpperUpper(d, t[3][c], t[1][c]), 2);
  });
}

// One panel of B from b[k, columns]: rows are copied. Columns past the end are zeros, here and below.
HWY_INLINE void pack_panel(std::int64_t k, std::int64_t columns, const float* HWY_RESTRICT b, std::int64_t ldb,
                           float* HWY_RESTRICT to) {
  if (columns >= panel_width) {
    for (std::int64_t p = 0; p < k; ++p, b += ldb, to += panel_width) {
      for (std::int64_t line = 0; line < panel_width; line += 16) hwy::Prefetch(b + 8 * ldb + line);
      hn::StoreU(hn::LoadU(D(), b), D(), to);
      hn::StoreU(hn::LoadU(D(), b + lanes), D(), to + lanes);
    }
  } else {
    const auto first = static_cast<std::size_t>(std::min(columns, lanes));
    const auto second = static_cast<std::size_t>(columns) - first;
    for (std::int64_t p = 0; p < k; ++p, b += ldb, to += panel_width) {
      hn::StoreU(load_n(b, first), D(), to);
      hn::StoreU(second ? load_n(b + lanes, second) : hn::Zero(D()), D(), to + lanes);
    }
  }
}

// Four rows of a panel from 1 to panel_width columns: columns of b become rows, in blocks of 4 by 4.
HWY_INLINE void pack_four_transposed(std::int64_t columns, const float* HWY_RESTRICT b, std::int64_t ldb,
                                     float* HWY_RESTRICT to) {
  const hn::CappedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> d64;
  for (std::int64_t j = 0; j < panel_width; j += 4, b += 4 * ldb, to += 4) {
    const auto row = [&](std::int64_t r) HWY_ATTR { return j + r < columns ? hn::LoadU(d, b + r * ldb) : hn::Zero(d); };
    const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    const auto lo01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
    const auto lo23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
    const auto hi01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
    const auto hi23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, lo01, lo23)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, lo01, lo23)), d, to + panel_width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, hi01, hi23)), d, to + 2 * panel_width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, hi01, hi23)), d, to + 3 * panel_width);
  }
}

// One panel of B from b[columns, k]: columns become rows.
HWY_INLINE void pack_panel_transposed(std::int64_t k, std::int64_t columns, const float* HWY_RESTRICT b,
                                      std::int64_t ldb, float* HWY_RESTRICT to) {
  const bool full = columns >= panel_width;
  std::int64_t p = 0;
  if constexpr (width == 16) {
    for (; full && p + 16 <= k; p += 16)
      for (std::int64_t j = 0; j < panel_width; j += 16)
        transpose_square(D(), b + j * ldb + p, ldb, to + p * panel_width + j, panel_width);
  } else if (full && ldb % 512 == 0) {  // rows a page apart: a whole line of each is used at a time
    for (; p + 16 <= k; p += 16)
      for (std::int64_t j = 0; j < panel_width; j += lanes)
        for (std::int64_t q = p; q < p + 16; q += 4)
          transpose_block(b + j * ldb + q, ldb, to + q * panel_width + j, panel_width);
  }
  for (; p + 4 <= k; p += 4) {
    if (full) {
      for (std::int64_t j = 0; j < panel_width; j += lanes)
        transpose_block(b + j * ldb + p, ldb, to + p * panel_width + j, panel_width);
    } else {
      pack_four_transposed(columns, b + p, ldb, to + p * panel_width);
    }
  }
  for (; p < k; ++p)
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
      const bool whole = p1 < k && i + lanes <= m;
      const auto count = static_cast<std::size_t>(rows);
      for (std::int64_t p = p0; p < p1; ++p, from += lda, at += rows) {
        if (lanes < tile_rows) {
          for (std::int64_t r = 0; r < rows; ++r) at[r] = from[r];
        } else if (whole) {
          hn::StoreU(hn::LoadU(D(), from), D(), at);
        } else {
          store_n(load_n(from, count), at, count);
        }
      }
    }
  }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
