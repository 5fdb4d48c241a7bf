#pragma once
// Where recurrent.cpp keeps things. Inside, everything is time-major (all samples of one step side by side), so that
// the rows of one step are one matrix, and the rows of all steps are one matrix too.

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/gemm_blocks.h"
#include "kernels/recurrent/recurrent.h"

namespace echelon::kernels {

// Hands out cache-line aligned pieces of a buffer, in floats; with a null base it only counts.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* take(std::int64_t floats) {
    float* piece = base_ ? base_ + used_ : nullptr;
    used_ += round_up(floats, 16);
    return piece;
  }
  std::int64_t used() const { return used_; }
  std::size_t bytes() const { return static_cast<std::size_t>(used_) * sizeof(float); }

 private:
  float* base_;
  std::int64_t used_ = 0;
};

// The gates of one sample at one step lie in a row: i f g o (lstm), r z n q (gru, q = W_hn h + b_hn), or the one sum.
constexpr std::int64_t saved_gates(Cell c) { return c == Cell::rnn_tanh || c == Cell::rnn_relu ? 1 : 4; }
// A row is a cache line longer than it needs to be: rows exactly 4096 bytes apart would fight for the same places in
// the first-level cache.
inline std::int64_t gate_row(const RecurrentShape& s) { return round_up(saved_gates(s.cell) * s.hidden, 16) + 16; }
inline std::int64_t state_row(const RecurrentShape& s) { return round_up(s.hidden, 16) + 16; }

struct RecurrentSaved {
  RecurrentSaved(const RecurrentShape& s, float* base) : all(base) {
    gate = all.take(s.seq * s.batch * gate_row(s));
    c = s.cell == Cell::lstm ? all.take(s.seq * s.batch * s.hidden) : nullptr;
  }
  Carver all;
  float* gate;  // [seq, batch, gate_row]
  float* c;     // [seq, batch, hidden]
};

inline std::int64_t packed_w_hh(const RecurrentShape& s) {
  return gates(s.cell) * s.hidden * round_up(s.hidden, panel_unit);
}

struct ForwardScratch {
  ForwardScratch(const RecurrentShape& s, float* base) : all(base) {
    bias = all.take(gates(s.cell) * s.hidden);
    w_hh = all.take(packed_w_hh(s));
    for (float*& h : state) h = all.take(s.batch * state_row(s));
    x = all.take(s.seq * s.batch * s.in);
    gemm = all.take(static_cast<std::int64_t>(gemm_scratch(projection(s)) / sizeof(float)));
  }
  static Gemm projection(const RecurrentShape& s) {
    return {.trans_b = true, .m = s.seq * s.batch, .n = gates(s.cell) * s.hidden, .k = s.in};
  }
  Carver all;
  float* bias;
  float* w_hh;      // packed panels, gate by gate
  float* state[2];  // h before and after the step at hand: [batch, state_row]
  float* x;         // [seq, batch, in]
  float* gemm;
};

struct BackwardScratch {
  BackwardScratch(const RecurrentShape& s, float* base) : all(base) {
    const std::int64_t rows = s.seq * s.batch, wide = gates(s.cell) * s.hidden;
    bias = all.take(saved_gates(s.cell) * s.hidden);
    w_hh = all.take(packed_w_hh(s));
    dh = all.take(s.batch * state_row(s));
    dc = all.take(s.batch * state_row(s));
    x = all.take(rows * s.in);
    h = all.take(rows * s.hidden);
    gemm = all.take(
        static_cast<std::int64_t>(std::max({gemm_scratch({.m = rows, .n = s.in, .k = wide}),
                                            gemm_scratch({.trans_a = true, .m = wide, .n = s.in, .k = rows}),
                                            gemm_scratch({.trans_a = true, .m = wide, .n = s.hidden, .k = rows})}) /
                                  sizeof(float)));
  }
  Carver all;
  float* bias;     // sums of the gates' gradients
  float* w_hh;     // packed panels over all gates
  float *dh, *dc;  // of the state after the step at hand: [batch, state_row]
  float *x, *h;    // [seq, batch, in]; h before each step [seq, batch, hidden]
  float* gemm;
};

}  // namespace echelon::kernels
