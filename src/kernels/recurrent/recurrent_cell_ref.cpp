#include <algorithm>
#include <cmath>

#include "kernels/recurrent/recurrent_cell.h"

namespace echelon::kernels {
namespace {

double ref_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
float to_float(double x) { return static_cast<float>(x); }

}  // namespace

void ref_cell_forward(const CellShape& s, const float* from_x, const float* from_h, const float* before, float* h,
                      float* c, float* saved) {
  const std::int64_t u = s.units, wide = gates(s.cell) * u, kept = cell_saved(s.cell) * u;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t j = 0; j < u; ++j) {
      const auto x = [&](std::int64_t k) { return static_cast<double>(from_x[b * wide + k * u + j]); };
      const auto y = [&](std::int64_t k) { return static_cast<double>(from_h[b * wide + k * u + j]); };
      const auto keep = [&](std::int64_t k, double v) { saved[b * kept + k * u + j] = to_float(v); };
      const std::int64_t at = b * u + j;
      if (s.cell == Cell::lstm) {
        const double i = ref_sigmoid(x(0) + y(0)), f = ref_sigmoid(x(1) + y(1)), g = std::tanh(x(2) + y(2));
        const double o = ref_sigmoid(x(3) + y(3)), now = f * before[at] + i * g;
        keep(0, i), keep(1, f), keep(2, g), keep(3, o);
        c[at] = to_float(now);
        h[at] = to_float(o * std::tanh(now));
      } else if (s.cell == Cell::gru) {
        const double r = ref_sigmoid(x(0) + y(0)), z = ref_sigmoid(x(1) + y(1)), n = std::tanh(x(2) + r * y(2));
        keep(0, r), keep(1, z), keep(2, n), keep(3, y(2));
        h[at] = to_float((1 - z) * n + z * before[at]);
      } else {
        h[at] = to_float(s.cell == Cell::rnn_tanh ? std::tanh(x(0) + y(0)) : std::max(x(0) + y(0), 0.0));
      }
    }
}

void ref_cell_backward(const CellShape& s, const CellGrad& g) {
  const std::int64_t u = s.units, wide = gates(s.cell) * u, kept = cell_saved(s.cell) * u;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t j = 0; j < u; ++j) {
      const std::int64_t at = b * u + j;
      const auto gate = [&](std::int64_t k) { return static_cast<double>(g.saved[b * kept + k * u + j]); };
      const auto put = [&](float* to, std::int64_t k, double v) { to[b * wide + k * u + j] = to_float(v); };
      const double dh = g.dh ? g.dh[at] : 0.0;
      if (s.cell == Cell::lstm) {
        const double i = gate(0), f = gate(1), n = gate(2), o = gate(3), t = std::tanh(static_cast<double>(g.c[at]));
        const double dc = (g.dc ? g.dc[at] : 0.0) + dh * o * (1 - t * t);
        put(g.d_from_x, 0, dc * n * i * (1 - i));
        put(g.d_from_x, 1, dc * g.before[at] * f * (1 - f));
        put(g.d_from_x, 2, dc * i * (1 - n * n));
        put(g.d_from_x, 3, dh * t * o * (1 - o));
        g.d_before[at] = to_float(dc * f);
      } else if (s.cell == Cell::gru) {
        const double r = gate(0), z = gate(1), n = gate(2), q = gate(3), dn = dh * (1 - z) * (1 - n * n);
        for (float* to : {g.d_from_x, g.d_from_h}) {
          put(to, 0, dn * q * r * (1 - r));
          put(to, 1, dh * (g.before[at] - n) * z * (1 - z));
        }
        put(g.d_from_x, 2, dn);
        put(g.d_from_h, 2, dn * r);
        g.d_before[at] = to_float(dh * z);
      } else {
        const double y = g.h[at];
        put(g.d_from_x, 0, s.cell == Cell::rnn_tanh ? dh * (1 - y * y) : (y > 0 ? dh : 0));
      }
    }
}

}  // namespace echelon::kernels
