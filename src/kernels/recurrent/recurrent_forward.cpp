// Forward: the inputs' share of all sums is one product over all steps; then, step by step, the states' share, with
// w_hh packed once. Units are taken a panel at a time: the products of all gates of these units, then the gates
// themselves, while the sums are still in the first-level cache.
#include <algorithm>

#include "kernels/gemm/gemm_packed.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/recurrent_layout.h"
#include "kernels/simd/simd_targets_512.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/recurrent_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/gemm_pack-inl.h"
#include "kernels/recurrent/recurrent_gates-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// Gate k of w_hh adds to this gate of the saved row: the gru's third is kept apart from the input's share.
HWY_INLINE std::int64_t hidden_column(Cell cell, std::int64_t k) { return cell == Cell::gru && k == 2 ? 3 : k; }

void pack_w_hh(const RecurrentShape& s, const float* w_hh, float* to) {
  for (std::int64_t k = 0; k < gates(s.cell); ++k)
    for (std::int64_t u = 0; u < s.hidden; u += panel_width, to += panel_width * s.hidden)
      pack_panel_transposed(s.hidden, std::min(panel_width, s.hidden - u), w_hh + (k * s.hidden + u) * s.hidden,
                            s.hidden, to);
}

template <Cell cell>
void run_forward(const RecurrentShape& s, const RecurrentWeights& w, const RecurrentState& start,
                 const RecurrentOutput& out, const RecurrentSaved& saved, const ForwardScratch& scratch) {
  const std::int64_t hidden = s.hidden, row = gate_row(s), h_row = state_row(s);
  const std::int64_t panel_floats = panel_width * hidden, panels = (hidden + panel_width - 1) / panel_width;
  for (std::int64_t t = 0; t < s.seq; ++t) {
    float *gate = saved.gate + t * s.batch * row, *before = scratch.state[t % 2], *after = scratch.state[(t + 1) % 2];
    const bool from_zero = t == 0 && !start.h0;
    for (std::int64_t u = 0; u < hidden; u += panel_width) {
      const std::int64_t units = std::min(panel_width, hidden - u);
      for (std::int64_t k = 0; k < gates(cell); ++k) {
        const bool apart = cell == Cell::gru && k == 2;
        if (from_zero && !apart) continue;
        run_panel(s.batch, {.k = from_zero ? 0 : hidden,
                            .a = before,
                            .rs = h_row,
                            .b = scratch.w_hh + (k * panels + u / panel_width) * panel_floats,
                            .c = gate + hidden_column(cell, k) * hidden + u,
                            .ldc = row,
                            .columns = units,
                            .beta = apart ? 0.0f : 1.0f,
                            .bias = apart && w.b_hh ? w.b_hh + 2 * hidden + u : nullptr});
      }
      const float* c0 = start.c0 ? start.c0 + u : nullptr;
      const std::int64_t c_at = t * s.batch * hidden + u;
      gates_forward<cell>({.batch = s.batch,
                           .units = units,
                           .hidden = hidden,
                           .gate = {gate + u, row},
                           .h_before = {from_zero ? nullptr : before + u, h_row},
                           .c_before = {t ? saved.c + c_at - s.batch * hidden : c0, hidden},
                           .h = {after + u, h_row},
                           .c = {saved.c + c_at, hidden},
                           .y = {out.y + t * hidden + u, s.seq * hidden}});
    }
  }
  for (std::int64_t b = 0; b < s.batch; ++b) {
    if (out.hn) std::copy_n(scratch.state[s.seq % 2] + b * h_row, hidden, out.hn + b * hidden);
    if (out.cn && saved.c) std::copy_n(saved.c + ((s.seq - 1) * s.batch + b) * hidden, hidden, out.cn + b * hidden);
  }
}

void RecurrentForward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                      const RecurrentOutput& out, float* saved_memory, float* scratch_memory) {
  const RecurrentSaved saved(s, saved_memory);
  const ForwardScratch scratch(s, scratch_memory);
  for (std::int64_t t = 0; t < s.seq; ++t)
    for (std::int64_t b = 0; b < s.batch; ++b)
      std::copy_n(x + (b * s.seq + t) * s.in, s.in, scratch.x + (t * s.batch + b) * s.in);
  const std::int64_t wide = gates(s.cell) * s.hidden, joined = s.cell == Cell::gru ? 2 * s.hidden : wide;
  for (std::int64_t j = 0; w.b_ih && j < wide; ++j) scratch.bias[j] = w.b_ih[j] + (j < joined ? w.b_hh[j] : 0.0f);
  packed_gemm(ForwardScratch::projection(s), scratch.x, s.in, w.w_ih, s.in, saved.gate, gate_row(s),
              w.b_ih ? scratch.bias : nullptr, scratch.gemm);
  pack_w_hh(s, w.w_hh, scratch.w_hh);
  for (std::int64_t b = 0; start.h0 && b < s.batch; ++b)
    std::copy_n(start.h0 + b * s.hidden, s.hidden, scratch.state[0] + b * state_row(s));
  switch (s.cell) {
    case Cell::lstm: return run_forward<Cell::lstm>(s, w, start, out, saved, scratch);
    case Cell::gru: return run_forward<Cell::gru>(s, w, start, out, saved, scratch);
    case Cell::rnn_tanh: return run_forward<Cell::rnn_tanh>(s, w, start, out, saved, scratch);
    case Cell::rnn_relu: return run_forward<Cell::rnn_relu>(s, w, start, out, saved, scratch);
  }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(RecurrentForward);

std::size_t recurrent_saved(const RecurrentShape& s) { return RecurrentSaved(s, nullptr).all.bytes(); }

std::size_t recurrent_scratch(const RecurrentShape& s) {
  return std::max(ForwardScratch(s, nullptr).all.bytes(), BackwardScratch(s, nullptr).all.bytes());
}

void recurrent_forward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                       const RecurrentOutput& out, void* saved, void* scratch) {
  if (s.batch == 0 || s.seq == 0 || s.hidden == 0) return;
  HWY_DYNAMIC_DISPATCH(RecurrentForward)
  (s, w, x, start, out, static_cast<float*>(saved), static_cast<float*>(scratch));
}

}  // namespace echelon::kernels
#endif
