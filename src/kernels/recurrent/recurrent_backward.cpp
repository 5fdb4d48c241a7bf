// Backward: from the last step to the first, the gates' gradients take the gates' place and give, through w_hh (packed
// once), the gradient of the state before. What sums over all steps (weights) or needs no order (inputs) is then one
// product each.
#include <algorithm>

#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/recurrent_layout.h"
#include "kernels/simd/simd_targets_512.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/recurrent_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/gemm_pack-inl.h"
#include "kernels/recurrent/recurrent_gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// One problem with everything it needs.
struct Backward {
  const RecurrentShape& s;
  const RecurrentState& start;
  const float* y;
  const RecurrentOutputGrad& dout;
  const RecurrentGrad& grad;
  RecurrentSaved saved;
  BackwardScratch scratch;
};

void pack_w_hh_rows(const RecurrentShape& s, const float* w_hh, float* to) {
  const std::int64_t depth = gates(s.cell) * s.hidden;
  for (std::int64_t u = 0; u < s.hidden; u += panel_width, to += panel_width * depth)
    pack_panel(depth, std::min(panel_width, s.hidden - u), w_hh + u, s.hidden, to);
}

template <Cell cell>
void gates_of_step(const Backward& p, std::int64_t t) {
  const RecurrentShape& s = p.s;
  const std::int64_t all = s.seq * s.hidden;  // distance of samples in y and dy
  const auto earlier = [&](const float* now, std::int64_t row, std::int64_t back, const float* first) HWY_ATTR {
    return t ? ConstRows{now - back, row} : ConstRows{first, s.hidden};
  };
  const float *y = p.y + t * s.hidden, *c = p.saved.c ? p.saved.c + t * s.batch * s.hidden : nullptr;
  gates_backward<cell>({.batch = s.batch,
                        .units = s.hidden,
                        .hidden = s.hidden,
                        .gate = {p.saved.gate + t * s.batch * gate_row(s), gate_row(s)},
                        .h_before = earlier(y, all, s.hidden, p.start.h0),
                        .c_before = c ? earlier(c, s.hidden, s.batch * s.hidden, p.start.c0) : ConstRows{},
                        .c = {c, s.hidden},
                        .y = {y, all},
                        .dy = {p.dout.dy ? p.dout.dy + t * s.hidden : nullptr, all},
                        .dh = {p.scratch.dh, state_row(s)},
                        .dc = {p.scratch.dc, state_row(s)},
                        .bias = p.scratch.bias});
}

// dh (+)= the gradients of `depth` gates from column `gate` on, times the rows of w_hh from `weight` on.
void add_through_w_hh(const Backward& p, std::int64_t t, std::int64_t gate, std::int64_t weight, std::int64_t depth,
                      float beta) {
  const RecurrentShape& s = p.s;
  const std::int64_t piece = even_piece(depth, 256, 8), panel_floats = gates(s.cell) * s.hidden * panel_width;
  for (std::int64_t u = 0; u < s.hidden; u += panel_width)
    for (std::int64_t k = 0; k < depth; k += piece)
      run_panel(s.batch, {.k = std::min(piece, depth - k),
                          .a = p.saved.gate + t * s.batch * gate_row(s) + gate + k,
                          .rs = gate_row(s),
                          .b = p.scratch.w_hh + u / panel_width * panel_floats + (weight + k) * panel_width,
                          .c = p.scratch.dh + u,
                          .ldc = state_row(s),
                          .columns = std::min(panel_width, s.hidden - u),
                          .beta = k ? 1.0f : beta});
}

template <Cell cell>
void run_backward(const Backward& p) {
  const std::int64_t hidden = p.s.hidden;
  for (std::int64_t t = p.s.seq - 1; t >= 0; --t) {
    gates_of_step<cell>(p, t);
    if (t == 0 && !p.grad.dh0) break;
    if constexpr (cell == Cell::gru) {
      add_through_w_hh(p, t, 0, 0, 2 * hidden, 1);
      add_through_w_hh(p, t, 3 * hidden, 2 * hidden, hidden, 1);
    } else {
      add_through_w_hh(p, t, 0, 0, gates(cell) * hidden, 0);
    }
  }
}

// Copies between [batch, seq, n] and [seq, batch, n].
void to_time_major(const RecurrentShape& s, std::int64_t n, const float* from, float* to) {
  for (std::int64_t t = 0; t < s.seq; ++t)
    for (std::int64_t b = 0; b < s.batch; ++b, to += n) std::copy_n(from + (b * s.seq + t) * n, n, to);
}
void to_batch_major(const RecurrentShape& s, std::int64_t n, const float* from, float* to) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t t = 0; t < s.seq; ++t, to += n) std::copy_n(from + (t * s.batch + b) * n, n, to);
}

// The products over all steps, from the gates' gradients.
void weight_gradients(const Backward& p, const float* w_ih, const float* x) {
  const RecurrentShape& s = p.s;
  const RecurrentGrad& grad = p.grad;
  const std::int64_t hidden = s.hidden, rows = s.seq * s.batch, wide = gates(s.cell) * hidden, row = gate_row(s);
  const auto dw = [&](const float* gate, std::int64_t m, const float* in, std::int64_t n, float* to) {
    gemm({.trans_a = true, .m = m, .n = n, .k = rows}, gate, row, in, n, to, n, p.scratch.gemm);
  };
  const float* gate = p.saved.gate;
  if (grad.dw_ih) {
    to_time_major(s, s.in, x, p.scratch.x);
    dw(gate, wide, p.scratch.x, s.in, grad.dw_ih);
  }
  if (grad.dx) {
    gemm({.m = rows, .n = s.in, .k = wide}, gate, row, w_ih, s.in, p.scratch.x, s.in, p.scratch.gemm);
    to_batch_major(s, s.in, p.scratch.x, grad.dx);
  }
  if (!grad.dw_hh) return;
  float* h = p.scratch.h;  // before each step: h0, then y but for its last step
  p.start.h0 ? std::copy_n(p.start.h0, s.batch * hidden, h) : std::fill_n(h, s.batch * hidden, 0.0f);
  for (std::int64_t t = 1; t < s.seq; ++t)
    for (std::int64_t b = 0; b < s.batch; ++b)
      std::copy_n(p.y + (b * s.seq + t - 1) * hidden, hidden, h + (t * s.batch + b) * hidden);
  const std::int64_t joined = s.cell == Cell::gru ? 2 * hidden : wide;
  dw(gate, joined, h, hidden, grad.dw_hh);
  if (s.cell == Cell::gru) dw(gate + 3 * hidden, hidden, h, hidden, grad.dw_hh + 2 * hidden * hidden);
}

void RecurrentBackward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                       const float* y, float* saved, const RecurrentOutputGrad& dout, const RecurrentGrad& grad,
                       float* scratch) {
  const Backward p{s, start, y, dout, grad, RecurrentSaved(s, saved), BackwardScratch(s, scratch)};
  const std::int64_t hidden = s.hidden, h_row = state_row(s), wide = gates(s.cell) * hidden;
  std::fill_n(p.scratch.dh, s.batch * h_row, 0.0f);
  std::fill_n(p.scratch.dc, s.batch * h_row, 0.0f);
  std::fill_n(p.scratch.bias, saved_gates(s.cell) * hidden, 0.0f);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    if (dout.dhn) std::copy_n(dout.dhn + b * hidden, hidden, p.scratch.dh + b * h_row);
    if (dout.dcn) std::copy_n(dout.dcn + b * hidden, hidden, p.scratch.dc + b * h_row);
  }
  pack_w_hh_rows(s, w.w_hh, p.scratch.w_hh);
  switch (s.cell) {
    case Cell::lstm: run_backward<Cell::lstm>(p); break;
    case Cell::gru: run_backward<Cell::gru>(p); break;
    case Cell::rnn_tanh: run_backward<Cell::rnn_tanh>(p); break;
    case Cell::rnn_relu: run_backward<Cell::rnn_relu>(p); break;
  }
  for (std::int64_t b = 0; b < s.batch; ++b) {
    if (grad.dh0) std::copy_n(p.scratch.dh + b * h_row, hidden, grad.dh0 + b * hidden);
    if (grad.dc0) std::copy_n(p.scratch.dc + b * h_row, hidden, grad.dc0 + b * hidden);
  }
  weight_gradients(p, w.w_ih, x);
  if (grad.db_ih) std::copy_n(p.scratch.bias, wide, grad.db_ih);
  if (grad.db_hh) std::copy_n(p.scratch.bias, wide, grad.db_hh);
  if (grad.db_hh && s.cell == Cell::gru) std::copy_n(p.scratch.bias + 3 * hidden, hidden, grad.db_hh + 2 * hidden);
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(RecurrentBackward);

void recurrent_backward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                        const float* y, void* saved, const RecurrentOutputGrad& dout, const RecurrentGrad& grad,
                        void* scratch) {
  if (s.batch == 0 || s.seq == 0 || s.hidden == 0) return;
  HWY_DYNAMIC_DISPATCH(RecurrentBackward)
  (s, w, x, start, y, static_cast<float*>(saved), dout, grad, static_cast<float*>(scratch));
}

}  // namespace echelon::kernels
#endif
