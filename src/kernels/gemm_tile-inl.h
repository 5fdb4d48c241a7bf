// The heart of every matrix product here: a tile of up to 6 rows by 2 vectors of C, held in registers while it runs
// along k. Twelve sums are in flight, enough to keep two multiply-adds a cycle busy. b is read as vectors from a packed
// panel (k rows of panel_width floats); a is broadcast from wherever it lies (row distance rs, step distance cs), so it
// needs no transposed copy. Compiled once per target (see simd-inl.h).

#if defined(ECHELON_KERNELS_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_GEMM_TILE_INL_H
#undef ECHELON_KERNELS_GEMM_TILE_INL_H
#else
#define ECHELON_KERNELS_GEMM_TILE_INL_H
#endif

#include <hwy/cache_control.h>

#include <cstdint>
#include <utility>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(width);
inline constexpr std::int64_t panel_width = 2 * lanes;
inline constexpr int tile_rows = 6;

template <int rows, int vectors>
struct Tile {
  V sum[rows][vectors];
};

// tile[i][v] = sum over p < k of a[i * rs + p * cs] * b[p * ldb + v * lanes ...]. With `pack`, b is also written, as it
// is read, to the panel `packed`: a copy that costs nothing beside the multiplications.
template <int rows, int vectors, bool pack>
HWY_INLINE void multiply(std::int64_t k, const float* HWY_RESTRICT a, std::int64_t rs, std::int64_t cs,
                         const float* HWY_RESTRICT b, std::int64_t ldb, float* HWY_RESTRICT packed,
                         Tile<rows, vectors>& tile) {
  const float* HWY_RESTRICT a3 = a + 3 * rs;  // two bases: x86 addresses reach rows 0, 1, 2 from each
  unrolled<rows>([&](auto i) HWY_ATTR { unrolled<vectors>([&](auto v) HWY_ATTR { tile.sum[i][v] = hn::Zero(D()); }); });
#pragma GCC unroll 8
  for (std::int64_t p = 0; p < k; ++p) {
    V bv[vectors];
    unrolled<vectors>([&](auto v) HWY_ATTR {
      bv[v] = hn::LoadU(D(), b + v * lanes);
      if constexpr (pack) hn::StoreU(bv[v], D(), packed + v * lanes);
    });
    unrolled<rows>([&](auto i) HWY_ATTR {
      const V ai = set(i < 3 ? a[i * rs] : a3[(i - 3) * rs]);
      unrolled<vectors>([&](auto v) HWY_ATTR { tile.sum[i][v] = hn::MulAdd(ai, bv[v], tile.sum[i][v]); });
    });
    a += cs, a3 += cs, b += ldb;
    if constexpr (pack) packed += panel_width;
  }
}

// c[rows, columns] = alpha * a[rows, k] * b[k, columns] + beta * c + bias, with columns <= panel_width.
struct Product {
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t rs = 0, cs = 1;
  const float* b = nullptr;  // a packed panel; or, when `packed` is given, rows of B at distance ldb
  std::int64_t ldb = 0;
  float* packed = nullptr;  // where to leave a packed copy of b (full panels only)
  float* c = nullptr;
  std::int64_t ldc = 0, columns = 0;
  float alpha = 1, beta = 0;  // with beta 0, c is not read
  const float* bias = nullptr;
};

HWY_INLINE V finished(const Product& p, V sum, V bias, V before) {
  return hn::MulAdd(sum, set(p.alpha), hn::MulAdd(before, set(p.beta), bias));
}

template <int rows, int vectors, bool pack>
HWY_NOINLINE void run_tile(const Product& p) {
  float* HWY_RESTRICT c = p.c;
  const std::int64_t ldc = p.ldc;
  for (int i = 0; i < rows; ++i) hwy::Prefetch(c + i * ldc);
  Tile<rows, vectors> tile;
  multiply<rows, vectors, pack>(p.k, p.a, p.rs, p.cs, p.b, pack ? p.ldb : panel_width, p.packed, tile);
  const bool full = p.columns == vectors * lanes, plain = full && p.alpha == 1 && !p.bias;
  unrolled<rows>([&](auto i) HWY_ATTR {
    unrolled<vectors>([&](auto v) HWY_ATTR {
      float* HWY_RESTRICT at = c + i * ldc + v * lanes;
      if (plain && p.beta == 0) {
        hn::StoreU(tile.sum[i][v], D(), at);
      } else if (plain && p.beta == 1) {
        hn::StoreU(hn::Add(tile.sum[i][v], hn::LoadU(D(), at)), D(), at);
      } else if (const std::int64_t left = p.columns - v * lanes; left >= lanes) {
        const V bias = p.bias ? hn::LoadU(D(), p.bias + v * lanes) : hn::Zero(D());
        hn::StoreU(finished(p, tile.sum[i][v], bias, p.beta == 0 ? hn::Zero(D()) : hn::LoadU(D(), at)), D(), at);
      } else if (left > 0) {
        const auto n = static_cast<std::size_t>(left);
        const V bias = p.bias ? load_n(p.bias + v * lanes, n) : hn::Zero(D());
        store_n(finished(p, tile.sum[i][v], bias, p.beta == 0 ? hn::Zero(D()) : load_n(at, n)), at, n);
      }
    });
  });
}

template <int... rows>
HWY_INLINE void run_tile_of(std::integer_sequence<int, rows...>, std::int64_t count, const Product& p) {
  using Run = void (*)(const Product&);
  static constexpr Run two[] = {run_tile<rows + 1, 2, false>...}, one[] = {run_tile<rows + 1, 1, false>...},
                       packing[] = {run_tile<rows + 1, 2, true>...};
  (p.packed ? packing : p.columns > lanes ? two : one)[count - 1](p);
}

// The product for one strip of 1 to tile_rows rows.
HWY_INLINE void run_strip(std::int64_t rows, const Product& p) {
  run_tile_of(std::make_integer_sequence<int, tile_rows>(), rows, p);
}

// m rows cut into the fewest strips, as even as can be: no strip of one row is left over to run at a sixth of the
// speed.
struct Strips {
  explicit Strips(std::int64_t m) : count((m + tile_rows - 1) / tile_rows), rows_each(m / count), longer(m % count) {}
  std::int64_t rows(std::int64_t strip) const { return rows_each + (strip < longer); }
  std::int64_t count, rows_each, longer;
};

// The product for m rows and one panel: the panel stays in the first-level cache while the rows of A pass by.
HWY_INLINE void run_panel(std::int64_t m, Product p) {
  const Strips strips(m);
  for (std::int64_t s = 0; s < strips.count; ++s) {
    run_strip(strips.rows(s), p);
    p.a += strips.rows(s) * p.rs, p.c += strips.rows(s) * p.ldc;
  }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
