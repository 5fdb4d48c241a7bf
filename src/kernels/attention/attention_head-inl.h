// One head of one sample: what forward and backward of attention share. Compiled once per target.
//
// Queries are taken in blocks; a block's scores are a matrix whose row i ends at visible(i). The causal triangle is
// skipped by strips of queries and panels of keys (six by sixteen, or twelve by thirty-two with AVX-512), so at most
// some keys past the diagonal are computed; their scores are set to zero before anyone uses them.

#if defined(ECHELON_KERNELS_ATTENTION_HEAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_ATTENTION_HEAD_INL_H
#undef ECHELON_KERNELS_ATTENTION_HEAD_INL_H
#else
#define ECHELON_KERNELS_ATTENTION_HEAD_INL_H
#endif

#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_layout.h"
#include "kernels/gemm/gemm_pack-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// The keys that query i sees are 0 .. visible - 1.
HWY_INLINE std::int64_t visible(const AttentionShape& s, std::int64_t i) {
  return s.causal ? i + 1 + s.keys - s.queries : s.keys;
}

// Rows of one head's q, k, v or their gradients.
template <typename T>
struct HeadRows {
  T* base;
  std::int64_t row;
  HWY_INLINE T* at(std::int64_t position) const { return base + position * row; }
};

// rows[n, dim] as panels over dim: what multiplies from the right, summing over positions.
HWY_INLINE void pack_rows(const HeadRows<const float>& rows, std::int64_t n, std::int64_t dim, float* to) {
  for (std::int64_t e = 0; e < dim; e += panel_width, to += n * panel_width)
    pack_panel(n, std::min(panel_width, dim - e), rows.base + e, rows.row, to);
}

// rows[n, dim]^T as panels over positions: what multiplies from the right, summing over dim.
HWY_INLINE void pack_transposed(const HeadRows<const float>& rows, std::int64_t n, std::int64_t dim, float* to) {
  for (std::int64_t j = 0; j < n; j += panel_width, to += dim * panel_width)
    pack_panel_transposed(dim, std::min(panel_width, n - j), rows.at(j), rows.row, to);
}

// scores[rows, visible] = from[i0 ...] * panels, for a block of `rows` queries from i0 on.
HWY_INLINE void multiply_by_keys(const AttentionShape& s, std::int64_t i0, std::int64_t rows,
                                 const HeadRows<const float>& from, const float* panels, float* scores) {
  const Strips strips(rows);
  std::int64_t first = 0, row = 0;  // the first strip that sees the panel, and its first row
  for (std::int64_t j = 0; j < visible(s, i0 + rows - 1); j += panel_width, panels += s.dim * panel_width) {
    while (visible(s, i0 + row + strips.rows(first) - 1) <= j) row += strips.rows(first++);
    Product p{.k = s.dim,
              .a = from.at(i0 + row),
              .rs = from.row,
              .b = panels,
              .c = scores + row * score_row(s) + j,
              .ldc = score_row(s),
              .columns = panel_width};
    for (std::int64_t strip = first; strip < strips.count; ++strip) {
      run_strip(strips.rows(strip), p);
      p.a += strips.rows(strip) * p.rs, p.c += strips.rows(strip) * p.ldc;
    }
  }
}

// to[i0 ...] = scores[rows, visible] * panels over dim, for the same block.
HWY_INLINE void multiply_scores(const AttentionShape& s, std::int64_t i0, std::int64_t rows, const float* scores,
                                const float* panels, const HeadRows<float>& to) {
  const Strips strips(rows);
  for (std::int64_t e = 0; e < s.dim; e += panel_width, panels += s.keys * panel_width)
    for (std::int64_t strip = 0, row = 0; strip < strips.count; row += strips.rows(strip++))
      run_strip(strips.rows(strip), {.k = visible(s, i0 + row + strips.rows(strip) - 1),
                                     .a = scores + row * score_row(s),
                                     .rs = score_row(s),
                                     .b = panels,
                                     .c = to.at(i0 + row) + e,
                                     .ldc = to.row,
                                     .columns = std::min(panel_width, s.dim - e)});
}

// exp(x) for x <= 0; what would be denormal stays at the smallest normal number.
HWY_INLINE V exp_below_zero(V x) {
  const hn::RebindToSigned<D> di;
  const ExpParts e = exp_parts(hn::Max(set(-87.3f), x));
  return hn::BitCast(D(), hn::Add(hn::BitCast(di, hn::Add(e.fraction, set(1.0f))), e.exponent));
}

// Clears what tiles may have computed, or will read, past the end of a row.
HWY_INLINE void clear_past(float* row, std::int64_t end) {
  for (std::int64_t j = 0; j < score_margin; j += lanes) hn::StoreU(hn::Zero(D()), D(), row + end + j);
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
