#include "kernels/recurrent.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

// What forward saves for each (sample, step): the gates in `width` floats, and the lstm's c.
std::int64_t width(const RecurrentShape& s) { return (s.cell == Cell::gru ? 4 : gates(s.cell)) * s.hidden; }

struct Saved {
  Saved(const RecurrentShape& s, void* memory)
      : gate(static_cast<float*>(memory)), c(gate + s.batch * s.seq * width(s)) {}
  float *gate, *c;
};

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::size_t recurrent_saved(const RecurrentShape& s) {
  return aligned(static_cast<std::size_t>(s.batch * s.seq * (width(s) + (s.cell == Cell::lstm ? s.hidden : 0))) *
                 sizeof(float));
}

std::size_t recurrent_scratch(const RecurrentShape& s) {
  return aligned(static_cast<std::size_t>(2 * s.batch * s.hidden) * sizeof(float));
}

void recurrent_forward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                       const RecurrentOutput& out, void* saved, void*) {
  const std::int64_t hidden = s.hidden, all = gates(s.cell) * hidden, wide = width(s);
  const Saved keep(s, saved);
  for (std::int64_t r = 0; r < s.batch * s.seq; ++r) {
    float* row = keep.gate + r * wide;
    if (!w.b_ih) {
      std::fill_n(row, wide, 0.0f);
      continue;
    }
    for (std::int64_t j = 0; j < all; ++j) row[j] = w.b_ih[j] + w.b_hh[j];
    if (s.cell == Cell::gru) {
      std::copy_n(w.b_ih + 2 * hidden, hidden, row + 2 * hidden);
      std::copy_n(w.b_hh + 2 * hidden, hidden, row + 3 * hidden);
    }
  }
  if (s.cell == Cell::gru && !w.b_ih)
    for (std::int64_t r = 0; r < s.batch * s.seq; ++r) std::fill_n(keep.gate + r * wide + 3 * hidden, hidden, 0.0f);
  gemm({.trans_b = true, .m = s.batch * s.seq, .n = all, .k = s.in, .beta = 1}, x, s.in, w.w_ih, s.in, keep.gate, wide,
       nullptr);
  for (std::int64_t t = 0; t < s.seq; ++t) {
    const float* h = t ? out.y + (t - 1) * hidden : start.h0;
    const std::int64_t ldh = t ? s.seq * hidden : hidden, ldg = s.seq * wide;
    float* gate = keep.gate + t * wide;
    if (h && s.cell == Cell::gru) {
      gemm({.trans_b = true, .m = s.batch, .n = 2 * hidden, .k = hidden, .beta = 1}, h, ldh, w.w_hh, hidden, gate, ldg,
           nullptr);
      gemm({.trans_b = true, .m = s.batch, .n = hidden, .k = hidden, .beta = 1}, h, ldh, w.w_hh + 2 * hidden * hidden,
           hidden, gate + 3 * hidden, ldg, nullptr);
    } else if (h) {
      gemm({.trans_b = true, .m = s.batch, .n = all, .k = hidden, .beta = 1}, h, ldh, w.w_hh, hidden, gate, ldg,
           nullptr);
    }
    for (std::int64_t b = 0; b < s.batch; ++b) {
      float *g = gate + b * ldg, *y = out.y + (b * s.seq + t) * hidden, *c = keep.c + (b * s.seq + t) * hidden;
      const float* c_before = t ? c - hidden : start.c0 ? start.c0 + b * hidden : nullptr;
      for (std::int64_t j = 0; j < hidden; ++j) {
        float *g0 = g + j, *g1 = g0 + hidden, *g2 = g1 + hidden, *g3 = g2 + hidden;
        if (s.cell == Cell::lstm) {
          *g0 = sigmoid(*g0), *g1 = sigmoid(*g1), *g2 = std::tanh(*g2), *g3 = sigmoid(*g3);
          c[j] = *g1 * (c_before ? c_before[j] : 0.0f) + *g0 * *g2;
          y[j] = *g3 * std::tanh(c[j]);
        } else if (s.cell == Cell::gru) {
          *g0 = sigmoid(*g0), *g1 = sigmoid(*g1), *g2 = std::tanh(*g2 + *g0 * *g3);
          y[j] = (1 - *g1) * *g2 + *g1 * (h ? h[b * ldh + j] : 0.0f);
        } else {
          y[j] = s.cell == Cell::rnn_tanh ? std::tanh(*g0) : std::max(*g0, 0.0f);
        }
      }
      if (t + 1 == s.seq && out.hn) std::copy_n(y, hidden, out.hn + b * hidden);
      if (t + 1 == s.seq && out.cn) std::copy_n(c, hidden, out.cn + b * hidden);
    }
  }
}

void recurrent_backward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                        const float* y, void* saved, const RecurrentOutputGrad& dout, const RecurrentGrad& grad,
                        void* scratch) {
  const std::int64_t hidden = s.hidden, all = gates(s.cell) * hidden, wide = width(s), rows = s.batch * s.seq;
  const Saved keep(s, saved);
  float *dh = static_cast<float*>(scratch), *dc = dh + s.batch * hidden;
  dout.dhn ? std::copy_n(dout.dhn, s.batch * hidden, dh) : std::fill_n(dh, s.batch * hidden, 0.0f);
  dout.dcn ? std::copy_n(dout.dcn, s.batch * hidden, dc) : std::fill_n(dc, s.batch * hidden, 0.0f);
  for (std::int64_t t = s.seq - 1; t >= 0; --t) {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::int64_t row = b * s.seq + t;
      const float* h_before = t ? y + (row - 1) * hidden : start.h0 ? start.h0 + b * hidden : nullptr;
      const float* c_before = t ? keep.c + (row - 1) * hidden : start.c0 ? start.c0 + b * hidden : nullptr;
      for (std::int64_t j = 0; j < hidden; ++j) {
        float *g0 = keep.gate + row * wide + j, *g1 = g0 + hidden, *g2 = g1 + hidden, *g3 = g2 + hidden;
        float &d = dh[b * hidden + j], &e = dc[b * hidden + j];
        if (dout.dy) d += dout.dy[row * hidden + j];
        if (s.cell == Cell::lstm) {
          const float i = *g0, f = *g1, g = *g2, o = *g3, tc = std::tanh(keep.c[row * hidden + j]);
          const float dcell = e + d * o * (1 - tc * tc);
          *g0 = dcell * g * i * (1 - i), *g1 = dcell * (c_before ? c_before[j] : 0.0f) * f * (1 - f);
          *g2 = dcell * i * (1 - g * g), *g3 = d * tc * o * (1 - o);
          e = dcell * f, d = 0;
        } else if (s.cell == Cell::gru) {
          const float r = *g0, z = *g1, n = *g2, q = *g3, dn = d * (1 - z) * (1 - n * n);
          *g0 = dn * q * r * (1 - r), *g1 = d * ((h_before ? h_before[j] : 0.0f) - n) * z * (1 - z);
          *g2 = dn, *g3 = dn * r, d *= z;
        } else {
          const float h = y[row * hidden + j];
          *g0 = s.cell == Cell::rnn_tanh ? d * (1 - h * h) : h > 0 ? d : 0.0f, d = 0;
        }
      }
    }
    if (t == 0 && !grad.dh0) break;
    const float* gate = keep.gate + t * wide;
    const std::int64_t part = s.cell == Cell::gru ? 2 * hidden : all;
    gemm({.m = s.batch, .n = hidden, .k = part, .beta = 1}, gate, s.seq * wide, w.w_hh, hidden, dh, hidden, nullptr);
    if (s.cell == Cell::gru)
      gemm({.m = s.batch, .n = hidden, .k = hidden, .beta = 1}, gate + 3 * hidden, s.seq * wide,
           w.w_hh + 2 * hidden * hidden, hidden, dh, hidden, nullptr);
  }
  if (grad.dh0) std::copy_n(dh, s.batch * hidden, grad.dh0);
  if (grad.dc0) std::copy_n(dc, s.batch * hidden, grad.dc0);
  if (grad.dx) gemm({.m = rows, .n = s.in, .k = all}, keep.gate, wide, w.w_ih, s.in, grad.dx, s.in, nullptr);
  if (grad.dw_ih)
    gemm({.trans_a = true, .m = all, .n = s.in, .k = rows}, keep.gate, wide, x, s.in, grad.dw_ih, s.in, nullptr);
  if (grad.db_ih) column_sums(rows, all, keep.gate, wide, grad.db_ih);
  if (grad.db_hh) {
    column_sums(rows, all, keep.gate, wide, grad.db_hh);
    if (s.cell == Cell::gru) column_sums(rows, hidden, keep.gate + 3 * hidden, wide, grad.db_hh + 2 * hidden);
  }
  if (!grad.dw_hh) return;
  // Row r of the gates' gradient meets row r - 1 of y, except at each sample's first step, where it meets h0: that part
  // is computed on its own, and its rows are cleared so that the rest is one product over all steps.
  const auto product = [&](float* gate, std::int64_t n, float* dw) {
    if (start.h0)
      gemm({.trans_a = true, .m = n, .n = hidden, .k = s.batch}, gate, s.seq * wide, start.h0, hidden, dw, hidden,
           nullptr);
    for (std::int64_t b = 0; b < s.batch; ++b) std::fill_n(gate + b * s.seq * wide, n, 0.0f);
    gemm({.trans_a = true, .m = n, .n = hidden, .k = rows - 1, .beta = start.h0 ? 1.0f : 0.0f}, gate + wide, wide, y,
         hidden, dw, hidden, nullptr);
  };
  product(keep.gate, s.cell == Cell::gru ? 2 * hidden : all, grad.dw_hh);
  if (s.cell == Cell::gru) product(keep.gate + 3 * hidden, hidden, grad.dw_hh + 2 * hidden * hidden);
}

}  // namespace echelon::kernels
