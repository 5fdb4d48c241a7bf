// Two orders of the same tiles, by what is cheap to read:
//   A as stored    A is never copied. A block of B is packed so that it fits the second-level cache; each strip of A
//                  meets all of it while the strip lies in the first-level cache.
//   A transposed   both are packed; a panel of B lies in the first-level cache while a block of A, in the second,
//                  passes by. Each number of A and B is packed once.
// The sums over k are cut at the same places whatever the order, so a result depends on the shape only.
#include "kernels/gemm/gemm_packed.h"

#include <algorithm>

#include "kernels/simd/simd_targets_512.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_packed.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/gemm_blocks.h"
#include "kernels/gemm/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

struct Operands {
  const Gemm& g;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
  const float* bias;
};

// A block of B: rows k0 .. k0 + k, columns n0 .. n0 + n, packed panel by panel at `packed`.
struct Block {
  std::int64_t k0, k, n0, n;
  float* packed;
};

void pack(const Operands& o, const Block& block, std::int64_t j) {
  const std::int64_t columns = std::min(panel_width, block.n - j), column = block.n0 + j;
  if (o.g.trans_b) {
    pack_panel_transposed(block.k, columns, o.b + column * o.ldb + block.k0, o.ldb, block.packed + j * block.k);
  } else {
    pack_panel(block.k, columns, o.b + block.k0 * o.ldb + column, o.ldb, block.packed + j * block.k);
  }
}

// Asks for the numbers of a part of a matrix, a few cache lines at a time, while another part is worked on: without it
// the core would wait for memory whenever a part begins, and memory for the core until it ends.
class Ahead {
 public:
  // `moments` is how often fetch() will be called.
  Ahead(const float* at, std::int64_t rows, std::int64_t columns, std::int64_t distance, std::int64_t moments)
      : at_(at),
        rows_(columns > 0 ? rows : 0),
        columns_(columns),
        distance_(distance),
        lines_((rows_ * ((columns + line - 1) / line) + moments - 1) / moments) {}
  HWY_INLINE void fetch() {
    for (std::int64_t i = 0; i < lines_ && rows_ > 0; ++i) {
      __builtin_prefetch(at_ + column_, 0, 2);  // into the second level
      if ((column_ += line) >= columns_) column_ = 0, at_ += distance_, --rows_;
    }
  }

 private:
  static constexpr std::int64_t line = 16;
  const float* at_;
  std::int64_t rows_, columns_, distance_, lines_, column_ = 0;
};

Ahead ahead_in_b(const Operands& o, const Block& next, std::int64_t moments) {
  if (next.n <= 0 || next.k <= 0) return {nullptr, 0, 0, 0, 1};
  if (o.g.trans_b) return {o.b + next.n0 * o.ldb + next.k0, next.n, next.k, o.ldb, moments};
  return {o.b + next.k0 * o.ldb + next.n0, next.k, next.n, o.ldb, moments};
}

// What all tiles of panel j of the block have in common; the caller adds a and c's row.
Product panel_product(const Operands& o, const Block& block, std::int64_t j) {
  const bool first = block.k0 == 0;
  return {.k = block.k,
          .b = block.packed + j * block.k,
          .c = o.c + block.n0 + j,
          .ldc = o.ldc,
          .columns = std::min(panel_width, block.n - j),
          .alpha = o.g.alpha,
          .beta = first ? o.g.beta : 1.0f,
          .bias = first && o.bias ? o.bias + block.n0 + j : nullptr};
}

void multiply_block(const Operands& o, const Block& block, const Block& next) {
  const Strips strips(o.g.m);
  Ahead ahead = ahead_in_b(o, next, strips.count * ((block.n + panel_width - 1) / panel_width));
  for (std::int64_t s = 0, i = 0; s < strips.count; i += strips.rows(s++))
    for (std::int64_t j = 0; j < block.n; j += panel_width) {
      Product p = panel_product(o, block, j);
      p.a = o.a + i * o.lda + block.k0, p.rs = o.lda, p.c += i * o.ldc;
      if (s == 0) {  // the first strip meets B unpacked
        if (!o.g.trans_b && p.columns == panel_width) {
          p.packed = block.packed + j * block.k, p.ldb = o.ldb, p.b = o.b + block.k0 * o.ldb + block.n0 + j;
        } else {
          pack(o, block, j);
        }
      }
      ahead.fetch();
      run_strip(strips.rows(s), p);
    }
}

// Sums so short that writing C takes longest: it is written row by row.
constexpr std::int64_t short_sum = 16;

void multiply_block_transposed(const Operands& o, const Block& block, const Block& next, float* packed_a) {
  const std::int64_t piece = rows_of_block(o.g), panels = (block.n + panel_width - 1) / panel_width;
  for (std::int64_t m0 = 0; m0 < o.g.m; m0 += piece) {
    const std::int64_t m = std::min(piece, o.g.m - m0);
    const Strips strips(m);
    pack_strips(strips, m, block.k, o.a + block.k0 * o.lda + m0, o.lda, packed_a);
    const bool more = m0 + piece < o.g.m;  // of this block; else the next one begins with the first rows
    const std::int64_t k0 = more ? block.k0 : next.k0, k = more ? block.k : next.k, i0 = more ? m0 + piece : 0;
    Ahead ahead(o.a + k0 * o.lda + i0, k, std::min(piece, o.g.m - i0), o.lda, panels * strips.count);
    const auto tile = [&](std::int64_t j, std::int64_t s) HWY_ATTR {
      if (m0 == 0 && s == 0) pack(o, block, j);
      ahead.fetch();
      Product p = panel_product(o, block, j);
      p.a = packed_a + strips.first(s) * block.k, p.rs = 1, p.cs = strips.rows(s);
      p.c += (m0 + strips.first(s)) * o.ldc;
      run_strip(p.cs, p);
    };
    if (block.k <= short_sum) {
      for (std::int64_t s = 0; s < strips.count; ++s)
        for (std::int64_t j = 0; j < block.n; j += panel_width) tile(j, s);
    } else {
      for (std::int64_t j = 0; j < block.n; j += panel_width)
        for (std::int64_t s = 0; s < strips.count; ++s) tile(j, s);
    }
  }
}

void PackedGemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                std::int64_t ldc, const float* bias, float* scratch) {
  const Operands o{g, a, lda, b, ldb, c, ldc, bias};
  const std::int64_t depth = depth_of_block(g), columns = columns_of_block(g);
  const auto block_at = [&](std::int64_t n0, std::int64_t k0) {
    return Block{k0, std::min(depth, g.k - k0), n0, std::min(columns, g.n - n0), scratch};
  };
  for (std::int64_t n0 = 0; n0 < g.n; n0 += columns)
    for (std::int64_t k0 = 0; k0 < g.k; k0 += depth) {
      const Block block = block_at(n0, k0);
      const bool below = k0 + depth < g.k;
      const Block next = block_at(below ? n0 : n0 + columns, below ? k0 + depth : 0);
      if (g.trans_a) {
        multiply_block_transposed(o, block, next.n > 0 ? next : Block{}, scratch + packed_b_floats(g));
      } else {
        multiply_block(o, block, fetches_ahead(g) ? next : Block{});
      }
    }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(PackedGemm);

std::size_t packed_gemm_scratch(const Gemm& g) {
  return static_cast<std::size_t>(packed_b_floats(g) + packed_a_floats(g)) * sizeof(float);
}

void packed_gemm(const Gemm& g, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                 std::int64_t ldc, const float* bias, void* scratch) {
  HWY_DYNAMIC_DISPATCH(PackedGemm)(g, a, lda, b, ldb, c, ldc, bias, static_cast<float*>(scratch));
}

}  // namespace echelon::kernels
#endif
