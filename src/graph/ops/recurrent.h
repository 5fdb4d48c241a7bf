#pragma once
// Whole-sequence recurrent layers on x[batch, time, in], with PyTorch's parameters and gate order.

#include "graph/graph.h"
#include "kernels/recurrent/recurrent.h"

namespace echelon::ops {

using kernels::Cell;   // lstm, gru, rnn_tanh, rnn_relu
using kernels::gates;  // 4, 3, 1, 1

struct Recurrent {
  Value y;       // [batch, time, hidden]
  Value h_last;  // [batch, hidden]
  Value c_last;  // the same, LSTM only
};

struct RecurrentWeights {
  Value w_ih, w_hh;  // [gates * hidden, in], [gates * hidden, hidden]
  Value b_ih, b_hh;  // [gates * hidden]
};

// h0 and c0 may be no value: zeros.
Recurrent recurrent(Graph& g, Cell cell, Value x, const RecurrentWeights& w, Value h0, Value c0);

}  // namespace echelon::ops
