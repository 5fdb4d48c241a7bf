// The element-wise half of recurrent cells, for some units of all samples at one step. Compiled once per target.

#if defined(ECHELON_KERNELS_RECURRENT_GATES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_RECURRENT_GATES_INL_H
#undef ECHELON_KERNELS_RECURRENT_GATES_INL_H
#else
#define ECHELON_KERNELS_RECURRENT_GATES_INL_H
#endif

#include <cstdint>

#include "kernels/recurrent/recurrent.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// Rows of one matrix, one for each sample; null base: zeros (in) or not wanted (out).
struct Rows {
  float* base = nullptr;
  std::int64_t stride = 0;
  HWY_INLINE float* of(std::int64_t sample) const { return base + sample * stride; }
};
struct ConstRows {
  const float* base = nullptr;
  std::int64_t stride = 0;
  HWY_INLINE const float* of(std::int64_t sample) const { return base + sample * stride; }
};

// One step of `batch` samples, seen from the first of `units` units: every pointer is already at that unit.
struct GateStep {
  std::int64_t batch, units, hidden;
  Rows gate;                     // gate k of a unit is `k * hidden` further
  ConstRows h_before, c_before;  // c: lstm only
  Rows h, c, y;                  // the state after the step; y is a copy of h
};

template <class At>
HWY_INLINE V load_or_zero(const At& at, const ConstRows& rows, std::int64_t b) {
  return rows.base ? at.load(rows.of(b)) : hn::Zero(D());
}

template <Cell cell, class At>
HWY_INLINE V cell_forward(const GateStep& s, std::int64_t b, const At& at) {
  float *g0 = s.gate.of(b), *g1 = g0 + s.hidden, *g2 = g1 + s.hidden, *g3 = g2 + s.hidden;
  if constexpr (cell == Cell::lstm) {
    const V i = fast_sigmoid(at.load(g0)), f = fast_sigmoid(at.load(g1));
    const V g = fast_tanh(at.load(g2)), o = fast_sigmoid(at.load(g3));
    const V c = hn::MulAdd(f, load_or_zero(at, s.c_before, b), hn::Mul(i, g));
    at.store(i, g0), at.store(f, g1), at.store(g, g2), at.store(o, g3), at.store(c, s.c.of(b));
    return hn::Mul(o, fast_tanh(c));
  } else if constexpr (cell == Cell::gru) {
    const V r = fast_sigmoid(at.load(g0)), z = fast_sigmoid(at.load(g1));
    const V n = fast_tanh(hn::MulAdd(r, at.load(g3), at.load(g2)));
    at.store(r, g0), at.store(z, g1), at.store(n, g2);
    return hn::MulAdd(z, hn::Sub(load_or_zero(at, s.h_before, b), n), n);
  } else if constexpr (cell == Cell::rnn_tanh) {
    return fast_tanh(at.load(g0));
  } else {
    return hn::Max(hn::Zero(D()), at.load(g0));
  }
}

// Sums in `gate` become gates; h, c and y are written.
template <Cell cell>
HWY_INLINE void gates_forward(const GateStep& s) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for_each_vector(static_cast<std::size_t>(s.units), [&](const auto& at) HWY_ATTR {
      const V h = cell_forward<cell>(s, b, at);
      at.store(h, s.h.of(b)), at.store(h, s.y.of(b));
    });
}

// The same view for backward. dh and dc are of the state after the step on entry; on exit dc, and the gru's dh, hold
// what reaches the state before the step directly, not through the gates' sums.
struct GateGradStep {
  std::int64_t batch, units, hidden;
  Rows gate;
  ConstRows h_before, c_before, c, y, dy;  // dy null: zero
  Rows dh, dc;
  float* bias;  // sums over samples and steps of the gates' gradients, gate k at k * hidden
};

template <class At>
struct GateGrad {
  V g[4];
};

HWY_INLINE V slope_of_sigmoid(V d, V s) { return hn::Mul(hn::Mul(d, s), hn::Sub(set(1.0f), s)); }
HWY_INLINE V slope_of_tanh(V d, V t) { return hn::NegMulAdd(hn::Mul(d, t), t, d); }

// Writes the gradients of sample b's gates over the gates and returns them.
template <Cell cell, class At>
HWY_INLINE GateGrad<At> cell_backward(const GateGradStep& s, std::int64_t b, const At& at) {
  float *g0 = s.gate.of(b), *g1 = g0 + s.hidden, *g2 = g1 + s.hidden, *g3 = g2 + s.hidden;
  const V dh = hn::Add(at.load(s.dh.of(b)), load_or_zero(at, s.dy, b));
  GateGrad<At> d;
  if constexpr (cell == Cell::lstm) {
    const V i = at.load(g0), f = at.load(g1), g = at.load(g2), o = at.load(g3), t = fast_tanh(at.load(s.c.of(b)));
    const V dc = hn::Add(at.load(s.dc.of(b)), slope_of_tanh(hn::Mul(dh, o), t));
    d.g[0] = slope_of_sigmoid(hn::Mul(dc, g), i);
    d.g[1] = slope_of_sigmoid(hn::Mul(dc, load_or_zero(at, s.c_before, b)), f);
    d.g[2] = slope_of_tanh(hn::Mul(dc, i), g);
    d.g[3] = slope_of_sigmoid(hn::Mul(dh, t), o);
    at.store(hn::Mul(dc, f), s.dc.of(b));
    at.store(d.g[0], g0), at.store(d.g[1], g1), at.store(d.g[2], g2), at.store(d.g[3], g3);
  } else if constexpr (cell == Cell::gru) {
    const V r = at.load(g0), z = at.load(g1), n = at.load(g2), q = at.load(g3);
    d.g[2] = slope_of_tanh(hn::NegMulAdd(dh, z, dh), n);
    d.g[0] = slope_of_sigmoid(hn::Mul(d.g[2], q), r);
    d.g[1] = slope_of_sigmoid(hn::Mul(dh, hn::Sub(load_or_zero(at, s.h_before, b), n)), z);
    d.g[3] = hn::Mul(d.g[2], r);
    at.store(hn::Mul(dh, z), s.dh.of(b));
    at.store(d.g[0], g0), at.store(d.g[1], g1), at.store(d.g[2], g2), at.store(d.g[3], g3);
  } else {
    const V h = at.load(s.y.of(b));
    d.g[0] = cell == Cell::rnn_tanh ? slope_of_tanh(dh, h) : hn::IfThenElseZero(hn::Gt(h, hn::Zero(D())), dh);
    at.store(d.g[0], g0);
  }
  return d;
}

template <Cell cell>
HWY_INLINE void gates_backward(const GateGradStep& s) {
  constexpr int count = cell == Cell::rnn_tanh || cell == Cell::rnn_relu ? 1 : 4;
  for_each_vector(static_cast<std::size_t>(s.units), [&](const auto& at) HWY_ATTR {
    V sum[count];
    for (int k = 0; k < count; ++k) sum[k] = at.load(s.bias + k * s.hidden);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const auto d = cell_backward<cell>(s, b, at);
      for (int k = 0; k < count; ++k) sum[k] = hn::Add(sum[k], d.g[k]);
    }
    for (int k = 0; k < count; ++k) at.store(sum[k], s.bias + k * s.hidden);
  });
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
