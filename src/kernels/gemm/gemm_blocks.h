#pragma once
// The sizes of the blocks that gemm_packed.cpp works in: a function of the shape alone, so that results are.

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace echelon::kernels {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// The length of a piece when n is cut into the fewest pieces of at most `most`, as even as multiples of `unit` allow.
constexpr std::int64_t even_piece(std::int64_t n, std::int64_t most, std::int64_t unit) {
  const std::int64_t pieces = std::max<std::int64_t>(1, (n + most - 1) / most);
  return round_up((n + pieces - 1) / pieces, unit);
}

constexpr std::int64_t panel_unit = 32;      // a multiple of every target's panel width
constexpr std::int64_t row_unit = 12;        // a multiple of every target's rows of a tile
constexpr std::int64_t most_depth = 256;     // steps of k at a time: a panel of B takes half of the first-level cache
constexpr std::int64_t most_rows = 192;      // of a packed block of A: it takes 192 KiB of the second level
constexpr std::int64_t most_floats = 65536;  // of a packed block of B: 256 KiB, half of the second level ...
constexpr std::int64_t most_floats_ahead = 32768;  // ... or 128 KiB, when the next block is fetched meanwhile ...
constexpr std::int64_t most_floats_transposed = 2048 * 256;  // ... or, with A transposed, 2 MiB of the third

constexpr std::int64_t depth_of_block(const Gemm& g) { return even_piece(g.k, most_depth, 8); }
// Whether B comes from further away than the second-level cache, so that the next block is fetched during this one.
constexpr bool fetches_ahead(const Gemm& g) { return !g.trans_a && g.k * g.n > 256 * 1024; }
constexpr std::int64_t columns_of_block(const Gemm& g) {
  const std::int64_t most = (g.trans_a          ? most_floats_transposed
                             : fetches_ahead(g) ? most_floats_ahead
                                                : most_floats) /
                            depth_of_block(g);
  return even_piece(g.n, most / panel_unit * panel_unit, panel_unit);
}
constexpr std::int64_t rows_of_block(const Gemm& g) { return even_piece(g.m, most_rows, row_unit); }

// Upper bounds that grow with m, n and k: what is enough for a product is enough for every smaller one.
constexpr std::int64_t packed_b_floats(const Gemm& g) {
  return std::min(round_up(g.n, panel_unit) * std::min(round_up(g.k, 8), most_depth),
                  g.trans_a ? most_floats_transposed : most_floats);
}
constexpr std::int64_t packed_a_floats(const Gemm& g) {
  if (!g.trans_a) return 0;
  constexpr std::int64_t spill = 16;  // see pack_strips
  return std::min(round_up(g.m, row_unit), most_rows) * std::min(round_up(g.k, 8), most_depth) + spill;
}

}  // namespace echelon::kernels
