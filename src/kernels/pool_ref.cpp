// The readable twins of pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/pool.h"

namespace echelon::kernels {
namespace {

// Calls act(x's plane, window's pixels [y0, y1) x [x0, x1), output index) for every output.
template <typename Act>
void for_each_window(const PoolShape& s, Act act) {
  for (std::int64_t plane = 0, out = 0; plane < s.n * s.c; ++plane)
    for (std::int64_t oy = 0; oy < s.out_h(); ++oy)
      for (std::int64_t ox = 0; ox < s.out_w(); ++ox, ++out) {
        const std::int64_t top = oy * s.stride_h - s.pad_h, left = ox * s.stride_w - s.pad_w;
        act(plane * s.h * s.w, std::max<std::int64_t>(0, top), std::min(s.h, top + s.kh),
            std::max<std::int64_t>(0, left), std::min(s.w, left + s.kw), out);
      }
}

// The first maximum (or NaN) of a window.
std::int64_t place_of_max(const PoolShape& s, const float* x, std::int64_t plane, std::int64_t y0, std::int64_t y1,
                          std::int64_t x0, std::int64_t x1) {
  std::int64_t best = plane + y0 * s.w + x0;
  for (std::int64_t y = y0; y < y1; ++y)
    for (std::int64_t i = x0; i < x1; ++i)
      if (const float v = x[plane + y * s.w + i]; v > x[best] || std::isnan(v)) best = plane + y * s.w + i;
  return best;
}

double divisor(const PoolShape& s, PoolKind kind, std::int64_t inside) {
  return static_cast<double>(kind == PoolKind::average ? s.kh * s.kw : inside);
}

}  // namespace

void ref_pool_forward(const PoolShape& s, PoolKind kind, const float* x, float* y) {
  for_each_window(s, [&](auto plane, auto y0, auto y1, auto x0, auto x1, auto out) {
    if (kind == PoolKind::max) {
      y[out] = x[place_of_max(s, x, plane, y0, y1, x0, x1)];
      return;
    }
    double sum = 0;
    for (auto r = y0; r < y1; ++r)
      for (auto i = x0; i < x1; ++i) sum += x[plane + r * s.w + i];
    y[out] = static_cast<float>(sum / divisor(s, kind, (y1 - y0) * (x1 - x0)));
  });
}

void ref_pool_backward(const PoolShape& s, PoolKind kind, const float* x, const float* dy, float* dx) {
  std::fill(dx, dx + s.n * s.c * s.h * s.w, 0.0f);
  for_each_window(s, [&](auto plane, auto y0, auto y1, auto x0, auto x1, auto out) {
    if (kind == PoolKind::max) {
      dx[place_of_max(s, x, plane, y0, y1, x0, x1)] += dy[out];
      return;
    }
    const double share = dy[out] / divisor(s, kind, (y1 - y0) * (x1 - x0));
    for (auto r = y0; r < y1; ++r)
      for (auto i = x0; i < x1; ++i) dx[plane + r * s.w + i] += static_cast<float>(share);
  });
}

}  // namespace echelon::kernels
