#pragma once
// Recurrent layers over whole sequences, with the parameters, gate order and formulas of torch.nn.LSTM, GRU and RNN
// (batch_first, one layer, one direction):
//   lstm  i, f, o = sigmoid, g = tanh of W_i* x + b_i* + W_h* h + b_h*;  c = f c + i g;  h = o tanh(c); rows i, f, g, o
//   gru   r, z = sigmoid(...), n = tanh(W_in x + b_in + r (W_hn h + b_hn));  h = (1 - z) n + z h;       rows r, z, n
//   rnn   h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu of it
// Shapes, all dense row-major: x[batch,seq,in]; y[batch,seq,hidden]; h0, c0, hn, cn[batch,hidden]; w_ih[G,in],
// w_hh[G,hidden], b_ih, b_hh[G] with G = gates(cell) * hidden.
//
// For truncated back-propagation hand hn/cn of one piece to the next as h0/c0. Where only the last output matters, use
// hn and give its gradient as dhn with dy null: then no gradient of size [batch,seq,hidden] exists at all.
//
// Single-threaded, no allocation, deterministic, thread-safe with separate scratch (see gemm.h). Nothing throws.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

enum class Cell : std::uint8_t { lstm, gru, rnn_tanh, rnn_relu };

constexpr std::int64_t gates(Cell c) { return c == Cell::lstm ? 4 : c == Cell::gru ? 3 : 1; }

struct RecurrentShape {
  Cell cell = Cell::lstm;
  std::int64_t batch = 0, seq = 0, in = 0, hidden = 0;
};

struct RecurrentWeights {
  const float *w_ih = nullptr, *w_hh = nullptr;
  const float *b_ih = nullptr, *b_hh = nullptr;  // both or neither
};

struct RecurrentState {
  const float *h0 = nullptr, *c0 = nullptr;  // null: zeros; c0 is the lstm's only
};

struct RecurrentOutput {
  float* y = nullptr;                  // required: backward reads it
  float *hn = nullptr, *cn = nullptr;  // null: not wanted
};

struct RecurrentOutputGrad {
  const float *dy = nullptr, *dhn = nullptr, *dcn = nullptr;  // null: zero
};

// Each is overwritten, or not computed when null.
struct RecurrentGrad {
  float *dx = nullptr, *dw_ih = nullptr, *dw_hh = nullptr, *db_ih = nullptr, *db_hh = nullptr;
  float *dh0 = nullptr, *dc0 = nullptr;
};

std::size_t recurrent_scratch(const RecurrentShape& s);  // bytes, enough for forward and backward
std::size_t recurrent_saved(const RecurrentShape& s);    // bytes of what forward leaves for backward

// `saved` is 64-byte aligned memory that must survive untouched until backward (an inference may discard it).
void recurrent_forward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                       const RecurrentOutput& out, void* saved, void* scratch);
// `saved` is consumed: backward turns it, in place, into the gradients of the gates.
void recurrent_backward(const RecurrentShape& s, const RecurrentWeights& w, const float* x, const RecurrentState& start,
                        const float* y, void* saved, const RecurrentOutputGrad& dout, const RecurrentGrad& grad,
                        void* scratch);

// The same, cell by cell and in double precision, allocating what they need; no saved buffer.
void ref_recurrent_forward(const RecurrentShape& s, const RecurrentWeights& w, const float* x,
                           const RecurrentState& start, const RecurrentOutput& out);
void ref_recurrent_backward(const RecurrentShape& s, const RecurrentWeights& w, const float* x,
                            const RecurrentState& start, const RecurrentOutputGrad& dout, const RecurrentGrad& grad);

}  // namespace echelon::kernels
