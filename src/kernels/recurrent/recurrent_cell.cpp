#include "kernels/recurrent/recurrent_cell.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/recurrent_cell.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE V sigmoid_slope(V d, V s) { return hn::Mul(hn::Mul(d, s), hn::Sub(set(1.0f), s)); }
HWY_INLINE V tanh_slope(V d, V t) { return hn::NegMulAdd(hn::Mul(d, t), t, d); }

HWY_FLATTEN void step_forward(const CellShape& s, const float* from_x, const float* from_h, const float* before,
                              float* h, float* c, float* saved) {
  const std::int64_t units = s.units, wide = gates(s.cell) * units;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const float *x = from_x + b * wide, *y = from_h + b * wide, *old = before ? before + b * units : nullptr;
    float *out = h + b * units, *kept = saved + b * cell_saved(s.cell) * units, *state = c + b * units;
    for_each_vector(static_cast<std::size_t>(units), [&](const auto& at) HWY_ATTR {
      const auto sum = [&](std::int64_t k) HWY_ATTR { return hn::Add(at.load(x + k * units), at.load(y + k * units)); };
      const auto keep = [&](std::int64_t k, V v) HWY_ATTR { at.store(v, kept + k * units); };
      if (s.cell == Cell::lstm) {
        const V i = fast_sigmoid(sum(0)), f = fast_sigmoid(sum(1)), g = fast_tanh(sum(2)), o = fast_sigmoid(sum(3));
        const V now = hn::MulAdd(f, at.load(old), hn::Mul(i, g));
        keep(0, i), keep(1, f), keep(2, g), keep(3, o);
        at.store(now, state);
        at.store(hn::Mul(o, fast_tanh(now)), out);
      } else if (s.cell == Cell::gru) {
        const V r = fast_sigmoid(sum(0)), z = fast_sigmoid(sum(1)), q = at.load(y + 2 * units);
        const V n = fast_tanh(hn::MulAdd(r, q, at.load(x + 2 * units)));
        keep(0, r), keep(1, z), keep(2, n), keep(3, q);
        at.store(hn::MulAdd(z, hn::Sub(at.load(old), n), n), out);
      } else {
        at.store(s.cell == Cell::rnn_tanh ? fast_tanh(sum(0)) : hn::Max(hn::Zero(D()), sum(0)), out);
      }
    });
  }
}

HWY_FLATTEN void step_backward(const CellShape& s, const CellGrad& g) {
  const std::int64_t units = s.units, wide = gates(s.cell) * units;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const auto row = [&](const float* base, std::int64_t n) { return base ? base + b * n : nullptr; };
    const float *before = row(g.before, units), *h = row(g.h, units), *c = row(g.c, units);
    const float *kept = row(g.saved, cell_saved(s.cell) * units), *dh_row = row(g.dh, units),
                *dc_row = row(g.dc, units);
    float *dx = g.d_from_x + b * wide, *dy = g.d_from_h + b * wide, *d_before = g.d_before + b * units;
    for_each_vector(static_cast<std::size_t>(units), [&](const auto& at) HWY_ATTR {
      const auto gate = [&](std::int64_t k) HWY_ATTR { return at.load(kept + k * units); };
      const V dh = dh_row ? at.load(dh_row) : hn::Zero(D());
      if (s.cell == Cell::lstm) {
        const V i = gate(0), f = gate(1), n = gate(2), o = gate(3), t = fast_tanh(at.load(c));
        const V dc = hn::Add(dc_row ? at.load(dc_row) : hn::Zero(D()), tanh_slope(hn::Mul(dh, o), t));
        at.store(sigmoid_slope(hn::Mul(dc, n), i), dx);
        at.store(sigmoid_slope(hn::Mul(dc, at.load(before)), f), dx + units);
        at.store(tanh_slope(hn::Mul(dc, i), n), dx + 2 * units);
        at.store(sigmoid_slope(hn::Mul(dh, t), o), dx + 3 * units);
        at.store(hn::Mul(dc, f), d_before);
      } else if (s.cell == Cell::gru) {
        const V r = gate(0), z = gate(1), n = gate(2), q = gate(3);
        const V dn = tanh_slope(hn::NegMulAdd(dh, z, dh), n), dr = sigmoid_slope(hn::Mul(dn, q), r);
        const V dz = sigmoid_slope(hn::Mul(dh, hn::Sub(at.load(before), n)), z);
        at.store(dr, dx), at.store(dz, dx + units), at.store(dn, dx + 2 * units);
        at.store(dr, dy), at.store(dz, dy + units), at.store(hn::Mul(dn, r), dy + 2 * units);
        at.store(hn::Mul(dh, z), d_before);
      } else {
        const V y = at.load(h);
        at.store(s.cell == Cell::rnn_tanh ? tanh_slope(dh, y) : hn::IfThenElseZero(hn::Gt(y, hn::Zero(D())), dh), dx);
      }
    });
  }
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(step_forward);
HWY_EXPORT(step_backward);

void cell_forward(const CellShape& s, const float* from_x, const float* from_h, const float* before, float* h, float* c,
                  float* saved) {
  HWY_DYNAMIC_DISPATCH(step_forward)(s, from_x, from_h, before, h, c, saved);
}

void cell_backward(const CellShape& s, const CellGrad& g) { HWY_DYNAMIC_DISPATCH(step_backward)(s, g); }

}  // namespace echelon::kernels
#endif
