// The heart of every matrix product here: a tile of up to 6 rows (12 with AVX-512, which has twice the registers) by 2
// vectors of C, held in registers while it runs along k. Twelve sums or more are in flight, enough to keep two
// multiply-adds a cycle busy. b is read as vectors from a packed panel (k rows of panel_width floats); a is broadcast
// from wherever it lies (row distance rs, step distance cs), so it needs no transposed copy. Each number of C is summed
// in the order of k in a lane of its own: the same bits in tiles of any size. Compiled once per target (see
// simd-inl.h).

#if defined(ECHELON_KERNELS_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_GEMM_TILE_INL_H
#undef ECHELON_KERNELS_GEMM_TILE_INL_H
#else
#define ECHELON_KERNELS_GEMM_TILE_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

inline constexpr std::int64_t lanes = static_cast<std::int64_t>(width);
inline constexpr std::int64_t panel_width = 2 * lanes;
inline constexpr int tile_rows = width == 16 ? 12 : 6;

template <int rows, int vectors>
struct Tile {
  V sum[rows][vectors];
};

// How a strip of A lies in memory: steps of k side by side, rows `rs` apart (as stored); or rows side by side, steps
// `cs` apart (transposed, or packed).
enum class Strip { by_rows, by_steps };

// tile[i][v] = sum over p < k of a[i * rs + p * cs] * b[p * ldb + v * lanes ...]. With `pack`, b is also written, as it
// is read, to the panel `packed`: a copy that costs nothing beside the multiplications.
template <int rows, int vectors, bool pack, Strip strip>
HWY_INLINE void multiply(std::int64_t k, const float* HWY_RESTRICT a, std::int64_t distance,
                         const float* HWY_RESTRICT b, std::int64_t ldb, float* HWY_RESTRICT packed,
                         Tile<rows, vectors>& tile) {
  constexpr bool by_rows = strip == Strip::by_rows;
  constexpr int bases = by_rows ? (rows + 2) / 3 : 1;  // x86 addresses reach rows 0, 1, 2 from each
  const float* HWY_RESTRICT base[bases];
  unrolled<bases>([&](auto i) HWY_ATTR { base[i] = a + 3 * i * distance; });
  unrolled<rows>([&](auto i) HWY_ATTR { unrolled<vectors>([&](auto v) HWY_ATTR { tile.sum[i][v] = hn::Zero(D()); }); });
#pragma GCC unroll 4
  for (std::int64_t p = 0; p < k; ++p) {
    V bv[vectors];
    unrolled<vectors>([&](auto v) HWY_ATTR {
      bv[v] = hn::LoadU(D(), b + v * lanes);
      if constexpr (pack) hn::StoreU(bv[v], D(), packed + v * lanes);
    });
    unrolled<rows>([&](auto i) HWY_ATTR {
      const V ai = set(by_rows ? base[i / 3 % bases][i % 3 * distance] : base[0][i]);
      unrolled<vectors>([&](auto v) HWY_ATTR { tile.sum[i][v] = hn::MulAdd(ai, bv[v], tile.sum[i][v]); });
    });
    unrolled<bases>([&](auto i) HWY_ATTR { base[i] += by_rows ? 1 : distance; });
    b += ldb;
    if constexpr (pack) packed += panel_width;
  }
}

// c[rows, columns] = alpha * a[rows, k] * b[k, columns] + beta * c + bias, with columns <= panel_width.
struct Product {
  std::int64_t k = 0;
  const float* a = nullptr;
  std::int64_t rs = 0, cs = 1;  // rows as stored with any rs; or, with any other cs, rs is 1
  const float* b = nullptr;     // a packed panel; or, when `packed` is given, rows of B at distance ldb
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

// The general end of a tile: any alpha, beta and bias, and columns that do not fill the vectors.
template <int vectors>
HWY_NOINLINE void finish_tile(const Product& p, std::int64_t rows, const float* HWY_RESTRICT sum) {
  for (std::int64_t v = 0; v < vectors && v * lanes < p.columns; ++v) {
    const auto n = static_cast<std::size_t>(std::min(lanes, p.columns - v * lanes));
    const bool whole = n == width;
    const V bias =
        p.bias ? (whole ? hn::LoadU(D(), p.bias + v * lanes) : load_n(p.bias + v * lanes, n)) : hn::Zero(D());
    for (std::int64_t i = 0; i < rows; ++i) {
      float* HWY_RESTRICT at = p.c + i * p.ldc + v * lanes;
      const V before = p.beta == 0 ? hn::Zero(D()) : whole ? hn::LoadU(D(), at) : load_n(at, n);
      const V result = finished(p, hn::Load(D(), sum + (i * vectors + v) * lanes), bias, before);
      whole ? hn::StoreU(result, D(), at) : store_n(result, at, n);
    }
  }
}

template <int rows, int vectors, bool pack, Strip strip>
HWY_NOINLINE void run_tile(const Product& p) {
  float* HWY_RESTRICT c = p.c;
  const std::int64_t ldc = p.ldc;
  if (p.k >= 16)
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors; v += 16 / lanes) hwy::Prefetch(c + i * ldc + v * lanes);
  Tile<rows, vectors> tile;
  multiply<rows, vectors, pack, strip>(p.k, p.a, strip == Strip::by_rows ? p.rs : p.cs, p.b, pack ? p.ldb : panel_width,
                                       p.packed, tile);
  const auto store_each = [&](const auto& result) HWY_ATTR {
    unrolled<rows>([&](auto i) HWY_ATTR {
      unrolled<vectors>([&](auto v) HWY_ATTR {
        float* HWY_RESTRICT at = c + i * ldc + v * lanes;
        hn::StoreU(result(tile.sum[i][v], at, v), D(), at);
      });
    });
  };
  const bool plain = p.columns == vectors * lanes && p.alpha == 1;
  if (plain && p.beta == 0 && !p.bias) {
    store_each([](V sum, const float*, auto) HWY_ATTR { return sum; });
  } else if (plain && p.beta == 1 && !p.bias) {
    store_each([](V sum, const float* at, auto) HWY_ATTR { return hn::Add(sum, hn::LoadU(D(), at)); });
  } else if (plain && p.beta == 0) {
    V bias[vectors];  // as finished() adds it: -0 becomes 0
    unrolled<vectors>([&](auto v) HWY_ATTR { bias[v] = hn::Add(hn::LoadU(D(), p.bias + v * lanes), hn::Zero(D())); });
    store_each([&](V sum, const float*, auto v) HWY_ATTR { return hn::Add(sum, bias[v]); });
  } else {
    HWY_ALIGN float sum[rows * vectors * width];
    unrolled<rows>([&](auto i) HWY_ATTR {
      unrolled<vectors>([&](auto v) HWY_ATTR { hn::Store(tile.sum[i][v], D(), sum + (i * vectors + v) * lanes); });
    });
    finish_tile<vectors>(p, rows, sum);
  }
}

template <int... rows>
HWY_INLINE void run_tile_of(std::integer_sequence<int, rows...>, std::int64_t count, const Product& p) {
  using Run = void (*)(const Product&);
  using enum Strip;
  static constexpr Run runs[2][2][sizeof...(rows)] = {
      {{run_tile<rows + 1, 1, false, by_rows>...}, {run_tile<rows + 1, 2, false, by_rows>...}},
      {{run_tile<rows + 1, 1, false, by_steps>...}, {run_tile<rows + 1, 2, false, by_steps>...}}};
  static constexpr Run packing[] = {run_tile<rows + 1, 2, true, by_rows>...};
  (p.packed ? packing : runs[p.cs != 1][p.columns > lanes])[count - 1](p);
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
  std::int64_t first(std::int64_t strip) const { return strip * rows_each + std::min(strip, longer); }
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
