#pragma once
// Few-bit numbers in float clothes: rounding to equal steps (to the nearest, or up or down by chance so that the mean
// is kept), signs, three values, and the mask that straight-through gradients need. No fused multiply-add, ties to
// even: SSE4, AVX2 and the ref_ twins give the same bits.
//
// What is no number stays none, and rounding makes an infinity none, so that training still notices. Thread-safe,
// allocates nothing. y may be x, dx may be dy.

#include <cstddef>

#include "base/random.h"

namespace echelon::kernels {

// y = clamp(round(x * in_scale + in_offset), least, most) * out_scale + out_offset
struct Steps {
  float in_scale = 1, in_offset = 0;
  float least = 0, most = 0;
  float out_scale = 1, out_offset = 0;
};
void round_to_steps(const Steps& s, const float* x, float* y, std::size_t n);
// The same with floor(. + u) for round(.), u = stream.uniform(i): the mean over all streams is the number itself.
void round_by_chance(const Steps& s, const Stream& stream, const float* x, float* y, std::size_t n);

// y = size with the sign of x; zero counts as positive.
void signs(float size, const float* x, float* y, std::size_t n);

// y = size with the sign of x where |x| > threshold, else 0.
void three_values(float threshold, float size, const float* x, float* y, std::size_t n);

// dx = dy where least <= x <= most, else 0.
void pass_between(float least, float most, const float* x, const float* dy, float* dx, std::size_t n);

// Sums over the elements with |x| > threshold, in reduce.h's order: of |x|, and how many there are.
struct Above {
  double sum = 0, count = 0;
};
Above above(float threshold, const float* x, std::size_t n);

void ref_round_to_steps(const Steps& s, const float* x, float* y, std::size_t n);
void ref_round_by_chance(const Steps& s, const Stream& stream, const float* x, float* y, std::size_t n);
void ref_signs(float size, const float* x, float* y, std::size_t n);
void ref_three_values(float threshold, float size, const float* x, float* y, std::size_t n);
void ref_pass_between(float least, float most, const float* x, const float* dy, float* dx, std::size_t n);
Above ref_above(float threshold, const float* x, std::size_t n);

}  // namespace echelon::kernels
