// The weight gradient: for every point, dU[in][out] = sum over tiles of V[tile][in] * D[tile][out], where V is the
// input transformed as in the forward pass and D the output's gradient transformed by A; then dw = G^T dU G.
//   V [point][input block][tile][8]    D [point][output block][tile][8]    dU [point][input channel][output channel]
// Tiles go in chunks; dU is added up over chunks. When there is only one chunk, dU is needed only piece by piece.
#include <memory>

#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_plan.h"
#include "kernels/simd/simd_targets_512.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_winograd_weights.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/conv_winograd-inl.h"

#ifndef ECHELON_KERNELS_CONV_WINOGRAD_WEIGHTS_ONCE
#define ECHELON_KERNELS_CONV_WINOGRAD_WEIGHTS_ONCE
namespace echelon::kernels::winograd {

// A piece of dU: `ins` input channels from `in` on, `outs` blocks of output channels from `out` on.
struct Piece {
  std::int64_t in, ins, out, outs;
  std::int64_t in_step() const { return outs * 8; }
  std::int64_t point_step() const { return spread(ins * outs * 8); }
};

}  // namespace echelon::kernels::winograd
#endif

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::winograd::HWY_NAMESPACE {

// V and D of tiles [first, last). Block by block, so that neighbouring tiles, which share cache lines, follow closely.
void transform_both(const Geometry& g, std::int64_t first, std::int64_t last, const float* x, const float* dy, float* v,
                    float* d) {
  const std::int64_t tiles = last - first, in_plane = g.in_h * g.in_w * 8, out_plane = g.out_h * g.out_w * 8;
  for (std::int64_t b = 0; b < g.in_blocks(); ++b)
    g.tiles.walk(first, last, [&](std::int64_t t, std::int64_t n, std::int64_t row, std::int64_t col) HWY_ATTR {
      transform_window<Bt>(x + (n * g.in_blocks() + b) * in_plane, g.in_h, g.in_w, row * tile - g.pad_h,
                           col * tile - g.pad_w, v + (b * tiles + t) * 8, spread(g.in_c * tiles));
    });
  for (std::int64_t b = 0; b < g.out_blocks(); ++b)
    g.tiles.walk(first, last, [&](std::int64_t t, std::int64_t n, std::int64_t row, std::int64_t col) HWY_ATTR {
      transform_window<A>(dy + (n * g.out_blocks() + b) * out_plane, g.out_h, g.out_w, row * tile, col * tile,
                          d + (b * tiles + t) * 8, spread(g.out_c * tiles));
    });
}

constexpr int max_outs = parts == 1 ? 3 : 1;  // twelve accumulators with four input channels

// du[i][OUTS * 8] += sum over tiles of v[tile][i] * d[tile][...], for four input channels i.
template <int OUTS>
HWY_INLINE void add_products(const float* v, const float* d, std::int64_t tiles, bool fresh, float* du,
                             std::int64_t du_step) {
  F8 sum[4][OUTS];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 3
    for (int o = 0; o < OUTS; ++o) sum[i][o] = fresh ? F8::set(0.0f) : F8::load(du + i * du_step + o * 8);
  for (std::int64_t t = 0; t < tiles; ++t, v += 8, d += 8) {
    F8 out[OUTS];
#pragma GCC unroll 3
    for (int o = 0; o < OUTS; ++o) out[o] = F8::load(d + o * tiles * 8);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const F8 in = F8::set(v[i]);
#pragma GCC unroll 3
      for (int o = 0; o < OUTS; ++o) sum[i][o] = mul_add(in, out[o], sum[i][o]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 3
    for (int o = 0; o < OUTS; ++o) sum[i][o].store(du + i * du_step + o * 8);
}

// du[i][VECS * 16] += the same for a whole block of input channels, where a vector has two blocks of output channels.
template <int VECS>
HWY_INLINE void add_products_16(const float* v, const float* d, std::int64_t tiles, bool fresh, float* du,
                                std::int64_t du_step) {
  const hn::Half<Tag16> half;
  hn::Vec<Tag16> sum[8][VECS];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
    for (int o = 0; o < VECS; ++o)
      sum[i][o] = fresh ? hn::Zero(Tag16()) : hn::LoadU(Tag16(), du + i * du_step + o * 16);
  for (std::int64_t t = 0; t < tiles; ++t, v += 8, d += 8) {
    hn::Vec<Tag16> out[VECS];
#pragma GCC unroll 2
    for (int o = 0; o < VECS; ++o)
      out[o] =
          hn::Combine(Tag16(), hn::LoadU(half, d + (2 * o + 1) * tiles * 8), hn::LoadU(half, d + 2 * o * tiles * 8));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const auto in = hn::Set(Tag16(), v[i]);
#pragma GCC unroll 2
      for (int o = 0; o < VECS; ++o) sum[i][o] = hn::MulAdd(in, out[o], sum[i][o]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
    for (int o = 0; o < VECS; ++o) hn::StoreU(sum[i][o], Tag16(), du + i * du_step + o * 16);
}

template <int VECS>
HWY_NOINLINE void add_blocks_16(const float* v, const float* d, std::int64_t tiles, std::int64_t ins, bool fresh,
                                float* du, std::int64_t du_step) {
  for (std::int64_t i = 0; i < ins; i += 8)
    add_products_16<VECS>(v + i * tiles, d, tiles, fresh, du + i * du_step, du_step);
}

template <int OUTS>
HWY_NOINLINE void add_blocks(const float* v, const float* d, std::int64_t tiles, std::int64_t ins, bool fresh,
                             float* du, std::int64_t du_step) {
  for (std::int64_t i = 0; i < ins; i += 4)
    add_products<OUTS>(v + i / 8 * 8 * tiles + i % 8, d, tiles, fresh, du + i * du_step, du_step);
}

// One point of a piece.
void multiply_piece(const Piece& p, std::int64_t tiles, const float* v, const float* d, bool fresh, float* du) {
  v += p.in * tiles, d += p.out * 8 * tiles;
  std::int64_t at = 0;
  if (has_16_lanes && p.ins % 8 == 0) {
    for (; at + 4 <= p.outs; at += 4)
      add_blocks_16<2>(v, d + at * 8 * tiles, tiles, p.ins, fresh, du + at * 8, p.in_step());
    for (; at + 2 <= p.outs; at += 2)
      add_blocks_16<1>(v, d + at * 8 * tiles, tiles, p.ins, fresh, du + at * 8, p.in_step());
  }
  const std::int64_t groups = (p.outs - at + max_outs - 1) / max_outs, begin = at;
  for (std::int64_t i = 0; i < groups; ++i) {
    const std::int64_t next = begin + (p.outs - begin) * (i + 1) / groups;
    const float* from = d + at * 8 * tiles;
    float* to = du + at * 8;
    switch (next - at) {
      case 1: add_blocks<1>(v, from, tiles, p.ins, fresh, to, p.in_step()); break;
      case 2:
        if constexpr (max_outs >= 2) add_blocks<2>(v, from, tiles, p.ins, fresh, to, p.in_step());
        break;
      case 3:
        if constexpr (max_outs >= 3) add_blocks<3>(v, from, tiles, p.ins, fresh, to, p.in_step());
        break;
    }
    at = next;
  }
}

// dw of a piece.
void transform_back(const Geometry& g, const Piece& p, const float* du, float* dw) {
  for (std::int64_t o = 0; o < p.outs; ++o)
    for (std::int64_t i = 0; i < p.ins; ++i) {
      HWY_ALIGN float kernel[9 * 8];
      const float* from = du + i * p.in_step() + o * 8;
      both_ways<Gt>(
          [&](int r, F8* in) HWY_ATTR {
#pragma GCC unroll 6
            for (int c = 0; c < 6; ++c) in[c] = F8::load(from + (r * 6 + c) * p.point_step());
          },
          [&](int r, int c, F8 v) HWY_ATTR { v.store(kernel + (r * 3 + c) * 8); });
      float* to = dw + (p.out + o) * 8 * g.weight_out + (p.in + i) * g.weight_in;
      transpose_8x8(kernel, 8, to, g.weight_out);
      for (int lane = 0; lane < 8; ++lane) to[lane * g.weight_out + 8] = kernel[64 + lane];
    }
}

// db = the sum of dy over samples and pixels; four strands a plane, then planes in order.
void sum_bias(const Geometry& g, const float* dy, float* db) {
  const std::int64_t pixels = g.out_h * g.out_w;
  for (std::int64_t b = 0; b < g.out_blocks(); ++b) {
    F8 total = F8::set(0.0f);
    for (std::int64_t n = 0; n < g.tiles.n; ++n) {
      const float* from = dy + (n * g.out_blocks() + b) * pixels * 8;
      F8 sum[4] = {F8::set(0.0f), F8::set(0.0f), F8::set(0.0f), F8::set(0.0f)};
      std::int64_t i = 0;
      for (; i + 4 <= pixels; i += 4)
        for (int k = 0; k < 4; ++k) sum[k] = sum[k] + F8::load(from + (i + k) * 8);
      for (; i < pixels; ++i) sum[0] = sum[0] + F8::load(from + i * 8);
      total = total + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    total.store(db + b * 8);
  }
}

}  // namespace echelon::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace winograd {
namespace {
HWY_EXPORT(transform_both);
HWY_EXPORT(multiply_piece);
HWY_EXPORT(transform_back);
HWY_EXPORT(sum_bias);

struct WeightsPlan {
  Geometry g;
  std::int64_t chunk, chunks;
  Piece piece;           // the size of pieces; several chunks: all of dU
  std::size_t v, d, du;  // bytes

  explicit WeightsPlan(const Geometry& geometry) : g(geometry) {
    const std::int64_t tiles = g.tiles.count();
    constexpr std::int64_t cache = 5 << 20;  // bytes for a chunk's V and D
    chunk = std::clamp<std::int64_t>(cache / (points * (g.in_c + g.out_c) * 4), 64, 256);
    chunks = (tiles + chunk - 1) / chunk;
    chunk = (tiles + chunks - 1) / chunks;
    piece = {0, g.in_c, 0, g.out_blocks()};
    if (chunks == 1) piece = {0, std::min<std::int64_t>(32, g.in_c), 0, std::min<std::int64_t>(4, g.out_blocks())};
    v = bytes(points * spread(g.in_c * chunk));
    d = bytes(points * spread(g.out_c * chunk));
    du = bytes(points * piece.point_step());
  }
  std::size_t scratch() const { return v + d + du; }
};

struct Gradient {
  WeightsPlan plan;
  const float *x, *dy;
  float *dw, *db;
  float *v, *d, *du;

  Gradient(const Geometry& g, const float* x, const float* dy, float* dw, float* db, std::byte* scratch)
      : plan(g),
        x(x),
        dy(dy),
        dw(dw),
        db(db),
        v(reinterpret_cast<float*>(scratch)),
        d(reinterpret_cast<float*>(scratch + plan.v)),
        du(reinterpret_cast<float*>(scratch + plan.v + plan.d)) {}

  void transform(std::int64_t first, std::int64_t last) const {
    HWY_DYNAMIC_DISPATCH(transform_both)(plan.g, first, last, x, dy, v, d);
  }
  void multiply(const Piece& p, std::int64_t tiles, bool fresh) const {
    for (std::int64_t point = 0; point < points; ++point) HWY_DYNAMIC_DISPATCH(multiply_piece)
    (p, tiles, v + point * spread(plan.g.in_c * tiles), d + point * spread(plan.g.out_c * tiles), fresh,
     du + point * p.point_step());
  }
  void finish(const Piece& p) const { HWY_DYNAMIC_DISPATCH(transform_back)(plan.g, p, du, dw); }

  void operator()() const {
    const std::int64_t tiles = plan.g.tiles.count();
    for (std::int64_t i = 0; i < plan.chunks; ++i) {
      const std::int64_t first = i * plan.chunk, last = std::min(tiles, first + plan.chunk);
      transform(first, last);
      if (plan.chunks > 1) multiply(plan.piece, last - first, i == 0);
    }
    if (plan.chunks > 1) {
      finish(plan.piece);
    } else {
      for (std::int64_t out = 0; out < plan.g.out_blocks(); out += plan.piece.outs)
        for (std::int64_t in = 0; in < plan.g.in_c; in += plan.piece.ins) {
          const Piece p{in, std::min(plan.piece.ins, plan.g.in_c - in), out,
                        std::min(plan.piece.outs, plan.g.out_blocks() - out)};
          multiply(p, tiles, true);
          finish(p);
        }
    }
    if (db) HWY_DYNAMIC_DISPATCH(sum_bias)(plan.g, dy, db);
  }
};

}  // namespace
}  // namespace winograd

using namespace winograd;

std::size_t conv_winograd_backward_weights_scratch(const ConvShape& s) {
  return WeightsPlan(forward_geometry(s)).scratch();
}

std::function<void()> make_conv_winograd_backward_weights(const ConvShape& s, const float* x, const float* dy,
                                                          float* dw, float* db, std::byte* scratch) {
  return Gradient(forward_geometry(s), x, dy, dw, db, scratch);
}

}  // namespace echelon::kernels
#endif
