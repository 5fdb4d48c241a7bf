// Vectorised functions of floats, accurate to a few units in the last place unless said otherwise. The polynomials are
// minimax fits made by tools/fit_polynomials.py, written here lowest power first. NaN in, NaN out.

#if defined(ECHELON_KERNELS_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHELON_KERNELS_MATH_INL_H
#undef ECHELON_KERNELS_MATH_INL_H
#else
#define ECHELON_KERNELS_MATH_INL_H
#endif

#include <limits>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// c[0] + c[1] x + c[2] x^2 + ... The even and the odd powers of a long one are two chains, so that the processor need
// not wait for each multiplication before it begins the next.
template <std::size_t n>
HWY_INLINE V polynomial(V x, const float (&c)[n]) {
  if constexpr (n < 8) {
    V y = set(c[n - 1]);
    for (std::size_t k = n - 1; k-- > 0;) y = hn::MulAdd(y, x, set(c[k]));
    return y;
  } else {
    const V x2 = hn::Mul(x, x);
    V y0 = set(c[n - 1]), y1 = set(c[n - 2]);  // of the powers n-1, n-3, ... and n-2, n-4, ...
    for (std::size_t k = n - 2; k-- > 0;) {
      V& y = (n - k) % 2 == 1 ? y0 : y1;
      y = hn::MulAdd(y, x2, set(c[k]));
    }
    return n % 2 == 1 ? hn::MulAdd(y1, x, y0) : hn::MulAdd(y0, x, y1);
  }
}

// Into [lo, hi]; the order of the operands lets NaN through on x86.
HWY_INLINE V clamp_keeping_nan(V x, float lo, float hi) { return hn::Max(set(lo), hn::Min(set(hi), x)); }

// exp(x) = 2^n * (1 + fraction) for |x| < 2^21: n and fraction's argument by adding a number so large that the sum's
// last bits are n itself.
struct ExpParts {
  V fraction;                               // exp(x - n ln 2) - 1, with full relative precision near 0
  hn::Vec<hn::RebindToSigned<D>> exponent;  // n << 23
};

HWY_INLINE ExpParts exp_parts(V x) {
  constexpr float q[] = {0.5f, 0.166665181517601f, 0.04166620597243309f, 0.00836891122162342f, 0.0013950522989034653f};
  const hn::RebindToSigned<D> di;
  const V magic = set(12582912.0f);  // 1.5 * 2^23
  const V shifted = hn::MulAdd(x, set(1.44269504088896341f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, set(0.693359375f), x);  // ln 2 in two parts; n times the first is exact
  r = hn::NegMulAdd(n, set(-2.12194440e-4f), r);
  return {hn::MulAdd(hn::Mul(r, r), polynomial(r, q), r), hn::ShiftLeft<23>(hn::BitCast(di, shifted))};
}

// Denormal results become 0.
HWY_INLINE V fast_exp(V x) {
  const hn::RebindToSigned<D> di;
  const ExpParts e = exp_parts(x);
  const V y = hn::BitCast(D(), hn::Add(hn::BitCast(di, hn::Add(e.fraction, set(1.0f))), e.exponent));
  // Above 88.72: infinity, and NaN where x is NaN. Below -87.33: 0.
  const V finite = hn::IfThenElse(hn::Le(x, set(88.7228394f)), y, hn::Mul(x, set(std::numeric_limits<float>::max())));
  return hn::IfThenZeroElse(hn::Lt(x, set(-87.3365402f)), finite);
}

// exp(x) - 1 for x in [-87, 87], precise near 0.
HWY_INLINE V fast_expm1(V x) {
  const hn::RebindToSigned<D> di;
  const ExpParts e = exp_parts(x);
  const V one = set(1.0f);
  const V power = hn::BitCast(D(), hn::Add(hn::BitCast(di, one), e.exponent));
  return hn::MulAdd(power, e.fraction, hn::Sub(power, one));
}

HWY_INLINE V fast_sigmoid(V x) { return hn::Div(set(1.0f), hn::Add(set(1.0f), fast_exp(hn::Neg(x)))); }

// (e - 1) / (e + 1) with e = exp(2x)
HWY_INLINE V fast_tanh(V x) {
  const V clamped = clamp_keeping_nan(x, -9.02f, 9.02f);  // tanh is 1 in float from there on
  const V e = fast_expm1(hn::Add(clamped, clamped));
  return hn::Div(e, hn::Add(e, set(2.0f)));
}

// 2 atanh(s) for 0 <= s^2 <= 1/9: log((1 + s) / (1 - s))
HWY_INLINE V twice_atanh(V s) {
  constexpr float a[] = {0.3333321213722229f, 0.20010580122470856f, 0.14003220200538635f, 0.13996845483779907f};
  const V z = hn::Mul(s, s), twice = hn::Add(s, s);
  return hn::MulAdd(hn::Mul(twice, z), polynomial(z, a), twice);
}

// log(1 + x) for 0 <= x <= 1
HWY_INLINE V fast_log1p_unit(V x) { return twice_atanh(hn::Div(x, hn::Add(x, set(2.0f)))); }

HWY_INLINE V fast_log(V x) {
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, set(std::numeric_limits<float>::min()));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, set(0x1p25f)), x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)): count the exponent from sqrt(1/2) = 0x3F3504F3.
  const auto bits = hn::Sub(hn::BitCast(di, normal), hn::Set(di, 0x3F3504F3));
  const V e = hn::Sub(hn::ConvertTo(D(), hn::ShiftRight<23>(bits)), hn::IfThenElseZero(tiny, set(25.0f)));
  const V m = hn::BitCast(D(), hn::Add(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F3504F3)));
  const V log_m = twice_atanh(hn::Div(hn::Sub(m, set(1.0f)), hn::Add(m, set(1.0f))));
  const V y = hn::MulAdd(e, set(0.693359375f), hn::MulAdd(e, set(-2.12194440e-4f), log_m));

  constexpr float infinity = std::numeric_limits<float>::infinity();
  const V at_edges = hn::IfThenElse(hn::Eq(x, hn::Zero(D())), set(-infinity),
                                    hn::IfThenElse(hn::Lt(x, hn::Zero(D())), hn::NaN(D()), x));  // inf and NaN stay
  const auto ordinary = hn::And(hn::Gt(x, hn::Zero(D())), hn::Lt(x, set(infinity)));
  return hn::IfThenElse(ordinary, y, at_edges);
}

HWY_INLINE V fast_softplus(V x) {
  return hn::Add(hn::Max(hn::Zero(D()), x), fast_log1p_unit(fast_exp(hn::Neg(hn::Abs(x)))));
}

// x * Phi(x), Phi(x) = 1/2 + x P(x^2) up to |x| = 5.2, where Phi is 0 or 1 in float. Absolute error 2e-7 * |x|.
HWY_INLINE V fast_gelu(V x) {
  constexpr float c[] = {0.1359499841928482f,    -0.06774380803108215f,   0.05002611130475998f,
                         -0.039925385266542435f, 0.03196229785680771f,    -0.024763556197285652f,
                         0.0181341040879488f,    -0.012352926656603813f,  0.008009438402950764f,
                         -0.005068207625299692f, 0.002663607941940427f,   -0.0009777426021173596f,
                         0.0005997466505505145f, -0.0005625611520372331f, 0.0002027300652116537f};
  constexpr float greatest = 5.2f * 5.2f;
  const V z = hn::Min(hn::Mul(x, x), set(greatest));
  const V t = hn::MulAdd(z, set(2 / greatest), set(-1.0f));  // [-1, 1] keeps the polynomial well conditioned
  const V half = clamp_keeping_nan(hn::Mul(x, polynomial(t, c)), -0.5f, 0.5f);
  return hn::Mul(x, hn::Add(half, set(0.5f)));
}

// d/dx (x * Phi(x)) = 1/2 + x Q(x^2) up to |x| = 5.8. Absolute error 2e-7.
HWY_INLINE V fast_gelu_slope(V x) {
  constexpr float c[] = {0.12199877202510834f,  -0.06165746971964836f,  0.048635948449373245f,  -0.04619701951742172f,
                         0.05016065761446953f,  -0.0577157586812973f,   0.06508607417345047f,   -0.06967659294605255f,
                         0.06976917386054993f,  -0.060307856649160385f, 0.04371586814522743f,   -0.036547426134347916f,
                         0.034990422427654266f, -0.01788250170648098f,  0.0003496815625112504f, -0.0029231985099613667f,
                         0.00733904168009758f,  -0.0029309128876775503f};
  constexpr float edge = 5.8f;
  const V clamped = clamp_keeping_nan(x, -edge, edge);
  const V t = hn::MulAdd(hn::Mul(clamped, clamped), set(2 / (edge * edge)), set(-1.0f));
  return hn::MulAdd(clamped, polynomial(t, c), set(0.5f));
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
