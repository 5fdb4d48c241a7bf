// The readable twins of recurrent.h: one cell of one sample at a time, in double. Backward walks the same cells in
// reverse with the chain rule written out.
#include <cmath>
#include <vector>

#include "kernels/recurrent/recurrent.h"

namespace echelon::kernels {
namespace {

using Vector = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What one cell computed for one sample at one time step.
struct CellStep {
  Vector gate;      // after the non-linearity: gates(cell) * hidden
  Vector n_hidden;  // gru: W_hn h + b_hn
  Vector h_before, c_before, h, c;
};

double row_dot(const float* w, std::int64_t row, std::int64_t n, const Vector& v) {
  double sum = 0;
  for (std::int64_t p = 0; p < n; ++p) sum += static_cast<double>(w[row * n + p]) * v[p];
  return sum;
}

CellStep run_cell(const RecurrentShape& s, const RecurrentWeights& w, const Vector& x, const Vector& h,
                  const Vector& c) {
  const std::int64_t hidden = s.hidden, all = gates(s.cell) * hidden;
  CellStep m{Vector(all), Vector(hidden), h, c, Vector(hidden), Vector(hidden)};
  Vector from_x(all), from_h(all);
  for (std::int64_t r = 0; r < all; ++r) {
    from_x[r] = row_dot(w.w_ih, r, s.in, x) + (w.b_ih ? w.b_ih[r] : 0.0);
    from_h[r] = row_dot(w.w_hh, r, hidden, h) + (w.b_hh ? w.b_hh[r] : 0.0);
  }
  for (std::int64_t j = 0; j < hidden; ++j) {
    const auto sum = [&](std::int64_t gate) { return from_x[gate * hidden + j] + from_h[gate * hidden + j]; };
    if (s.cell == Cell::lstm) {
      const double i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = std::tanh(sum(2)), o = sigmoid(sum(3));
      m.gate[j] = i, m.gate[hidden + j] = f, m.gate[2 * hidden + j] = g, m.gate[3 * hidden + j] = o;
      m.c[j] = f * c[j] + i * g;
      m.h[j] = o * std::tanh(m.c[j]);
    } else if (s.cell == Cell::gru) {
      const double r = sigmoid(sum(0)), z = sigmoid(sum(1));
      m.n_hidden[j] = from_h[2 * hidden + j];
      const double n = std::tanh(from_x[2 * hidden + j] + r * m.n_hidden[j]);
      m.gate[j] = r, m.gate[hidden + j] = z, m.gate[2 * hidden + j] = n;
      m.h[j] = (1 - z) * n + z * h[j];
    } else {
      m.h[j] = m.gate[j] = s.cell == Cell::rnn_tanh ? std::tanh(sum(0)) : std::max(sum(0), 0.0);
    }
  }
  return m;
}

Vector row_of(const float* base, std::int64_t row, std::int64_t n) {
  return base ? Vector(base + row * n, base + (row + 1) * n) : Vector(n, 0.0);
}

std::vector<CellStep> run_sample(const RecurrentShape& s, const RecurrentWeights& w, const float* x,
                                 const RecurrentState& start, std::int64_t b) {
  std::vector<CellStep> steps;
  Vector h = row_of(start.h0, b, s.hidden), c = row_of(start.c0, b, s.hidden);
  for (std::int64_t t = 0; t < s.seq; ++t) {
    steps.push_back(run_cell(s, w, row_of(x, b * s.seq + t, s.in), h, c));
    h = steps.back().h, c = steps.back().c;
  }
  return steps;
}

// From the gradients of h and c after a cell to those of its sums (from_x, from_h); dc and dh become the direct part of
// the gradients of h and c before the cell.
void cell_gradient(const RecurrentShape& s, const CellStep& m, Vector& dh, Vector& dc, Vector& d_from_x,
                   Vector& d_from_h) {
  const std::int64_t hidden = s.hidden;
  for (std::int64_t j = 0; j < hidden; ++j) {
    const auto put = [&](std::int64_t gate, double d) {
      d_from_x[gate * hidden + j] = d_from_h[gate * hidden + j] = d;
    };
    if (s.cell == Cell::lstm) {
      const double i = m.gate[j], f = m.gate[hidden + j], g = m.gate[2 * hidden + j], o = m.gate[3 * hidden + j];
      const double tanh_c = std::tanh(m.c[j]), d = dc[j] + dh[j] * o * (1 - tanh_c * tanh_c);
      put(0, d * g * i * (1 - i));
      put(1, d * m.c_before[j] * f * (1 - f));
      put(2, d * i * (1 - g * g));
      put(3, dh[j] * tanh_c * o * (1 - o));
      dc[j] = d * f;
      dh[j] = 0;
    } else if (s.cell == Cell::gru) {
      const double r = m.gate[j], z = m.gate[hidden + j], n = m.gate[2 * hidden + j];
      const double dn = dh[j] * (1 - z) * (1 - n * n);
      put(0, dn * m.n_hidden[j] * r * (1 - r));
      put(1, dh[j] * (m.h_before[j] - n) * z * (1 - z));
      d_from_x[2 * hidden + j] = dn;
      d_from_h[2 * hidden + j] = dn * r;
      dh[j] *= z;
    } else {
      put(0, s.cell == Cell::rnn_tanh ? dh[j] * (1 - m.h[j] * m.h[j]) : m.h[j] > 0 ? dh[j] : 0.0);
      dh[j] = 0;
    }
  }
}

}  // namespace

void ref_recurrent_forward(const RecurrentShape& s, const RecurrentWeights& w, const float* x,
                           const RecurrentState& start, const RecurrentOutput& out) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::vector<CellStep> steps = run_sample(s, w, x, start, b);
    for (std::int64_t j = 0; j < s.hidden; ++j) {
      for (std::int64_t t = 0; t < s.seq; ++t)
        out.y[(b * s.seq + t) * s.hidden + j] = static_cast<float>(steps[t].h[j]);
      if (out.hn) out.hn[b * s.hidden + j] = static_cast<float>(steps.back().h[j]);
      if (out.cn) out.cn[b * s.hidden + j] = static_cast<float>(steps.back().c[j]);
    }
  }
}

void ref_recurrent_backward(const RecurrentShape& s, const RecurrentWeights& w, const float* x,
                            const RecurrentState& start, const RecurrentOutputGrad& dout, const RecurrentGrad& grad) {
  const std::int64_t hidden = s.hidden, all = gates(s.cell) * hidden;
  Vector dw_ih(all * s.in), dw_hh(all * hidden), db_ih(all), db_hh(all);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::vector<CellStep> steps = run_sample(s, w, x, start, b);
    Vector dh = row_of(dout.dhn, b, hidden), dc = row_of(dout.dcn, b, hidden), from_x(all), from_h(all);
    for (std::int64_t t = s.seq - 1; t >= 0; --t) {
      const std::int64_t row = b * s.seq + t;
      for (std::int64_t j = 0; dout.dy && j < hidden; ++j) dh[j] += dout.dy[row * hidden + j];
      cell_gradient(s, steps[t], dh, dc, from_x, from_h);
      for (std::int64_t r = 0; r < all; ++r) {
        for (std::int64_t p = 0; p < s.in; ++p) dw_ih[r * s.in + p] += from_x[r] * x[row * s.in + p];
        for (std::int64_t p = 0; p < hidden; ++p) dw_hh[r * hidden + p] += from_h[r] * steps[t].h_before[p];
        for (std::int64_t p = 0; p < hidden; ++p) dh[p] += from_h[r] * w.w_hh[r * hidden + p];
        db_ih[r] += from_x[r], db_hh[r] += from_h[r];
      }
      for (std::int64_t p = 0; grad.dx && p < s.in; ++p) {
        double sum = 0;
        for (std::int64_t r = 0; r < all; ++r) sum += from_x[r] * w.w_ih[r * s.in + p];
        grad.dx[row * s.in + p] = static_cast<float>(sum);
      }
    }
    for (std::int64_t j = 0; grad.dh0 && j < hidden; ++j) grad.dh0[b * hidden + j] = static_cast<float>(dh[j]);
    for (std::int64_t j = 0; grad.dc0 && j < hidden; ++j) grad.dc0[b * hidden + j] = static_cast<float>(dc[j]);
  }
  const auto give = [](const Vector& from, float* to) {
    for (std::size_t i = 0; to && i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
  };
  give(dw_ih, grad.dw_ih), give(dw_hh, grad.dw_hh), give(db_ih, grad.db_ih), give(db_hh, grad.db_hh);
}

}  // namespace echelon::kernels
