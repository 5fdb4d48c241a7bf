// Forward and backward data. Work goes in chunks of tiles and in panels of 16 output channels:
//   V [chunk][point][tile][input channel]          transformed input
//   U [panel][point][input channel][16]            transformed weights
//   M [panel of the group][point][tile][16]        their products, transformed back at once into y
// The larger of U and V is what must not be kept whole: with many tiles, V is made chunk by chunk and meets all of U;
// with many channels, U is made group by group and meets all of V.
#include "kernels/conv/conv_winograd.h"

#include <memory>
#include <utility>

#include "kernels/conv/conv_winograd_plan.h"
#include "kernels/simd/simd_targets_512.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_winograd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/conv_winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::winograd::HWY_NAMESPACE {

// V for tiles [first, last). Two blocks at a time, which fill a cache line of V and leave few streams to read. What the
// next two blocks, or the next chunk's first two, will read is asked for meanwhile.
void transform_input(const Geometry& g, std::int64_t first, std::int64_t last, const float* x, float* v) {
  const std::int64_t plane = g.in_h * g.in_w * 8, blocks = g.in_blocks(), step = spread((last - first) * g.in_c);
  const auto place = [&](std::int64_t n, std::int64_t b, std::int64_t row, std::int64_t col)
                         HWY_ATTR { return x + (n * blocks + b) * plane + (row * g.in_w + col) * tile * 8; };
  for (std::int64_t pair = 0; pair < blocks; pair += 2)
    g.tiles.walk(first, last, [&](std::int64_t t, std::int64_t n, std::int64_t row, std::int64_t col) HWY_ATTR {
      prefetch_points(v + (t + 1) * g.in_c + pair * 8, step);
      for (std::int64_t b = pair; b < std::min(pair + 2, blocks); ++b) {
        if (b + 2 < blocks) prefetch_tile(place(n, b + 2, row, col), g.in_w * 8);
        transform_window<Bt>(x + (n * blocks + b) * plane, g.in_h, g.in_w, row * tile - g.pad_h, col * tile - g.pad_w,
                             v + t * g.in_c + b * 8, step);
      }
    });
  g.tiles.walk(last, std::min(g.tiles.count(), last + (last - first)),
               [&](std::int64_t, std::int64_t n, std::int64_t row, std::int64_t col) HWY_ATTR {
                 for (std::int64_t b = 0; b < std::min<std::int64_t>(2, blocks); ++b)
                   prefetch_tile(place(n, b, row, col), g.in_w * 8);
               });
}

// U for `blocks` blocks of eight output channels (one panel's: at most two) from `first` on.
void transform_weights(const Geometry& g, std::int64_t first, std::int64_t blocks, const float* w, float* u) {
  const std::int64_t width = blocks * 8, step = spread(g.in_c * width);
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < g.in_c; ++i) {
      const float* from = w + (first + b) * 8 * g.weight_out + i * g.weight_in;
      HWY_ALIGN float kernel[9 * 8];
      transpose_8x8(from, g.weight_out, kernel, 8);
      for (int lane = 0; lane < 8; ++lane) kernel[64 + lane] = from[lane * g.weight_out + 8];
      float* to = u + i * width + b * 8;
      both_ways<G>(
          [&](int r, F8* in) HWY_ATTR {
            for (int c = 0; c < 3; ++c) in[c] = F8::load(kernel + (g.turned ? 8 - r * 3 - c : r * 3 + c) * 8);
          },
          [&](int r, int c, F8 value) HWY_ATTR { value.store(to + (r * 6 + c) * step); });
    }
}

// m[tile][VECS * 8] = sum over k of v[tile][k] * u[k][VECS * 8], for T tiles.
template <int T, int VECS>
HWY_INLINE void multiply_tile(const float* v, std::int64_t depth, const float* u, float* m) {
  F8 sum[T][VECS];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
    for (int j = 0; j < VECS; ++j) sum[t][j] = F8::set(0.0f);
  for (std::int64_t k = 0; k < depth; ++k, u += VECS * 8) {
    F8 weights[VECS];
#pragma GCC unroll 2
    for (int j = 0; j < VECS; ++j) weights[j] = F8::load(u + j * 8);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F8 in = F8::set(v[t * depth + k]);
#pragma GCC unroll 2
      for (int j = 0; j < VECS; ++j) sum[t][j] = mul_add(in, weights[j], sum[t][j]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
    for (int j = 0; j < VECS; ++j) sum[t][j].store(m + (t * VECS + j) * 8);
}

constexpr int max_tiles = parts == 1 ? 6 : 3;  // twelve accumulators with two blocks of channels

// One point: all tiles of a chunk against one panel.
template <int VECS>
HWY_NOINLINE void multiply_point(const float* v, std::int64_t tiles, std::int64_t depth, const float* u, float* m) {
  const std::int64_t groups = (tiles + max_tiles - 1) / max_tiles;
  for (std::int64_t i = 0, at = 0; i < groups; ++i) {
    const std::int64_t next = tiles * (i + 1) / groups;
    const float* from = v + at * depth;
    float* to = m + at * VECS * 8;
    switch (next - at) {
      case 1: multiply_tile<1, VECS>(from, depth, u, to); break;
      case 2: multiply_tile<2, VECS>(from, depth, u, to); break;
      case 3: multiply_tile<3, VECS>(from, depth, u, to); break;
      case 4:
        if constexpr (max_tiles >= 4) multiply_tile<4, VECS>(from, depth, u, to);
        break;
      case 5:
        if constexpr (max_tiles >= 5) multiply_tile<5, VECS>(from, depth, u, to);
        break;
      case 6:
        if constexpr (max_tiles >= 6) multiply_tile<6, VECS>(from, depth, u, to);
        break;
    }
    at = next;
  }
}

// The same for a whole panel where a vector has its 16 numbers: each tile has one, and twelve tiles are in flight.
template <int T>
HWY_INLINE void multiply_tile_16(const float* v, std::int64_t depth, const float* u, float* m) {
  hn::Vec<Tag16> sum[T];
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) sum[t] = hn::Zero(Tag16());
  for (std::int64_t k = 0; k < depth; ++k, u += 16) {
    const auto weights = hn::LoadU(Tag16(), u);
#pragma GCC unroll 12
    for (int t = 0; t < T; ++t) sum[t] = hn::MulAdd(hn::Set(Tag16(), v[t * depth + k]), weights, sum[t]);
  }
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) hn::StoreU(sum[t], Tag16(), m + t * 16);
}

template <int... tiles_less_one>
HWY_INLINE void multiply_point_16(std::integer_sequence<int, tiles_less_one...>, const float* v, std::int64_t tiles,
                                  std::int64_t depth, const float* u, float* m) {
  using Run = void (*)(const float*, std::int64_t, const float*, float*);
  constexpr Run run[] = {multiply_tile_16<tiles_less_one + 1>...};
  constexpr std::int64_t most = sizeof...(tiles_less_one);
  const std::int64_t groups = (tiles + most - 1) / most;
  for (std::int64_t i = 0, at = 0; i < groups; ++i) {
    const std::int64_t next = tiles * (i + 1) / groups;
    run[next - at - 1](v + at * depth, depth, u, m + at * 16);
    at = next;
  }
}

void multiply(const float* v, std::int64_t tiles, std::int64_t depth, std::int64_t point, const float* u,
              std::int64_t blocks, float* m) {
  v += point * spread(tiles * depth);
  u += point * spread(depth * blocks * 8);
  m += point * spread(tiles * blocks * 8);
  if (blocks == 2 && has_16_lanes)
    return multiply_point_16(std::make_integer_sequence<int, 12>(), v, tiles, depth, u, m);
  blocks == 2 ? multiply_point<2>(v, tiles, depth, u, m) : multiply_point<1>(v, tiles, depth, u, m);
}

// y of tiles [first, last), `blocks` blocks of channels from `block` on. What follows `ahead` blocks further on is
// asked for meanwhile.
void transform_output(const Geometry& g, std::int64_t first, std::int64_t last, std::int64_t block, std::int64_t blocks,
                      std::int64_t ahead, const float* m, const float* bias, bool with_relu, float* y) {
  const std::int64_t width = blocks * 8, step = spread((last - first) * width), plane = g.out_h * g.out_w * 8;
  g.tiles.walk(first, last, [&](std::int64_t t, std::int64_t n, std::int64_t row, std::int64_t col) HWY_ATTR {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const F8 add = bias ? F8::load(bias + (block + b) * 8) : F8::set(0.0f);
      const float* from = m + t * width + b * 8;
      const std::int64_t top = row * tile, left = col * tile;
      float* to = y + (n * g.out_blocks() + block + b) * plane + (top * g.out_w + left) * 8;
      prefetch_tile(to + ahead * plane, g.out_w * 8);
      const auto load = [&](int r, F8* in) HWY_ATTR {
#pragma GCC unroll 6
        for (int c = 0; c < 6; ++c) in[c] = F8::load(from + (r * 6 + c) * step);
      };
      const auto store = [&](int r, int c, F8 v) HWY_ATTR {
        v = v + add;
        (with_relu ? relu(v) : v).store(to + (r * g.out_w + c) * 8);
      };
      if (top + tile <= g.out_h && left + tile <= g.out_w)
        both_ways<At>(load, store);
      else
        both_ways<At>(load, [&](int r, int c, F8 v) HWY_ATTR {
          if (top + r < g.out_h && left + c < g.out_w) store(r, c, v);
        });
    }
  });
}

}  // namespace echelon::kernels::winograd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace winograd {
namespace {
HWY_EXPORT(transform_input);
HWY_EXPORT(transform_weights);
HWY_EXPORT(multiply);
HWY_EXPORT(transform_output);

// How the work is cut, and where in scratch its parts are.
struct Plan {
  Geometry g;
  std::int64_t chunk, chunks;  // tiles of a chunk
  std::int64_t group, panels;  // panels that meet a chunk together
  bool keep_weights;           // U whole and V by chunks, or the other way round
  std::size_t v, u, m;         // bytes

  explicit Plan(const Geometry& geometry) : g(geometry) {
    const std::int64_t tiles = g.tiles.count();
    panels = (g.out_blocks() + 1) / 2;
    keep_weights = g.out_c <= tiles;
    chunk = std::min<std::int64_t>(tiles, g.in_c <= 128 ? 24 : 48);
    chunks = (tiles + chunk - 1) / chunk;
    group = std::min<std::int64_t>(panels, g.in_c <= 64 ? 1 : 2);
    v = bytes(v_chunk() * (keep_weights ? 1 : chunks));
    u = bytes(u_panel() * (keep_weights ? panels : group));
    m = bytes(m_panel() * group);
  }
  std::size_t scratch() const { return v + u + m; }
  std::int64_t v_chunk() const { return points * spread(g.in_c * chunk); }  // floats
  std::int64_t u_panel() const { return points * spread(g.in_c * 16); }
  std::int64_t m_panel() const { return points * spread(chunk * 16); }
  std::int64_t first(std::int64_t i) const { return i * chunk; }
  std::int64_t last(std::int64_t i) const { return std::min(g.tiles.count(), (i + 1) * chunk); }
  std::int64_t blocks(std::int64_t panel) const { return std::min<std::int64_t>(2, g.out_blocks() - panel * 2); }
};

struct Conv {
  Plan plan;
  const float *x, *w, *bias;
  bool relu;
  float* y;
  float *v, *u, *m;

  Conv(const Geometry& g, const float* x, const float* w, const float* bias, bool relu, float* y, std::byte* scratch)
      : plan(g),
        x(x),
        w(w),
        bias(bias),
        relu(relu),
        y(y),
        v(reinterpret_cast<float*>(scratch)),
        u(reinterpret_cast<float*>(scratch + plan.v)),
        m(reinterpret_cast<float*>(scratch + plan.v + plan.u)) {}

  void make_input(std::int64_t i, float* to) const {
    HWY_DYNAMIC_DISPATCH(transform_input)(plan.g, plan.first(i), plan.last(i), x, to);
  }
  void make_weights(std::int64_t panel, float* to) const {
    HWY_DYNAMIC_DISPATCH(transform_weights)(plan.g, panel * 2, plan.blocks(panel), w, to);
  }
  // Chunk i against panels [panel, panel + group).
  void meet(std::int64_t i, const float* input, std::int64_t panel, const float* weights) const {
    const std::int64_t tiles = plan.last(i) - plan.first(i), end = std::min(panel + plan.group, plan.panels);
    const std::int64_t u_panel = plan.u_panel(), m_panel = plan.m_panel();
    for (std::int64_t point = 0; point < points; ++point)
      for (std::int64_t p = panel; p < end; ++p) HWY_DYNAMIC_DISPATCH(multiply)
    (input, tiles, plan.g.in_c, point, weights + (p - panel) * u_panel, plan.blocks(p), m + (p - panel) * m_panel);
    for (std::int64_t p = panel; p < end; ++p) HWY_DYNAMIC_DISPATCH(transform_output)
    (plan.g, plan.first(i), plan.last(i), p * 2, plan.blocks(p), plan.group * 2, m + (p - panel) * m_panel, bias, relu,
     y);
  }

  void operator()() const {
    const std::int64_t u_panel = plan.u_panel(), v_chunk = plan.v_chunk();
    if (plan.keep_weights) {
      for (std::int64_t p = 0; p < plan.panels; ++p) make_weights(p, u + p * u_panel);
      for (std::int64_t i = 0; i < plan.chunks; ++i) {
        make_input(i, v);
        for (std::int64_t p = 0; p < plan.panels; p += plan.group) meet(i, v, p, u + p * u_panel);
      }
    } else {
      for (std::int64_t i = 0; i < plan.chunks; ++i) make_input(i, v + i * v_chunk);
      for (std::int64_t p = 0; p < plan.panels; p += plan.group) {
        for (std::int64_t k = p; k < std::min(p + plan.group, plan.panels); ++k) make_weights(k, u + (k - p) * u_panel);
        for (std::int64_t i = 0; i < plan.chunks; ++i) meet(i, v + i * v_chunk, p, u);
      }
    }
  }
};

}  // namespace
}  // namespace winograd

using namespace winograd;

bool winograd_suits(const ConvShape& s, ConvLayouts layouts) {
  if (layouts != ConvLayouts{Layout::channel8, Layout::channel8} || s.kh != 3 || s.kw != 3 || s.stride_h != 1 ||
      s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1 || s.groups != 1 || s.pad_h > 2 || s.pad_w > 2)
    return false;
  // Cycles of a core, from measurement: products at 14 a cycle either way, and about 250 for the transform of a tile
  // or a kernel of eight channels.
  const double products = 1.0 / 14, transform = 250.0 / 8;
  const double c = static_cast<double>(s.c), o = static_cast<double>(s.out_c);
  const double tiles = static_cast<double>(forward_geometry(s).tiles.count());
  const double direct = products * static_cast<double>(s.macs());
  return products * 36 * tiles * c * o + transform * (tiles * (c + o) + c * o) < 0.9 * direct;
}

std::size_t conv_winograd_forward_scratch(const ConvShape& s) { return Plan(forward_geometry(s)).scratch(); }

std::function<void()> make_conv_winograd_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                                                 bool relu, float* y, std::byte* scratch) {
  return Conv(forward_geometry(s), x, w, bias, relu, y, scratch);
}

std::size_t conv_winograd_backward_data_scratch(const ConvShape& s) {
  return Plan(backward_data_geometry(s)).scratch();
}

std::function<void()> make_conv_winograd_backward_data(const ConvShape& s, const float* dy, const float* w, float* dx,
                                                       std::byte* scratch) {
  return Conv(backward_data_geometry(s), dy, w, nullptr, false, dx, scratch);
}

}  // namespace echelon::kernels
#endif
