#pragma once
// One step of a recurrent layer, for some of its units: what is left when the sums over inputs and over the state
// before are known. With it a layer can be cut by units (graph/ops/recurrent.cpp); whole layers are in recurrent.h,
// which has the formulas. Single-threaded, allocates nothing, thread-safe.

#include <cstdint>

#include "kernels/recurrent/recurrent.h"

namespace echelon::kernels {

struct CellShape {
  Cell cell = Cell::lstm;
  std::int64_t batch = 0, units = 0;
};

// Floats that forward leaves for backward, for each sample and unit: the gates; the gru's also W_hn h + b_hn.
constexpr std::int64_t cell_saved(Cell c) { return c == Cell::lstm || c == Cell::gru ? 4 : 0; }

// from_x, from_h[batch, gates * units]: the sums, biases included. `before`[batch, units]: c (lstm) or h (gru); unused
// by others. Writes h, c (lstm) and saved[batch, cell_saved * units].
void cell_forward(const CellShape& s, const float* from_x, const float* from_h, const float* before, float* h, float* c,
                  float* saved);

struct CellGrad {
  const float *before, *h, *c, *saved;  // as in forward, where the cell has them
  const float *dh, *dc;                 // null: zero
  float* d_from_x;
  float* d_from_h;  // gru only: the others' is d_from_x
  float* d_before;  // lstm and gru
};
void cell_backward(const CellShape& s, const CellGrad& g);

void ref_cell_forward(const CellShape& s, const float* from_x, const float* from_h, const float* before, float* h,
                      float* c, float* saved);
void ref_cell_backward(const CellShape& s, const CellGrad& g);

}  // namespace echelon::kernels
