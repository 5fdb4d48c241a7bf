#pragma once
// Element-wise programs: a short list of steps that is applied to every element. This is what fusion produces: a chain
// such as gelu(x + bias) * mask reads each input once and writes its result once; what lies between stays in the
// first-level cache.
//
// Thread-safe (no state), allocates nothing. An element's result depends on its inputs only, not on its position or n,
// so a range may be split anywhere. NaN propagates through every step except `greater` and the gradients' conditions.
// exp, log, sigmoid, tanh, softplus, elu are accurate to about 1e-6 relative; exp and sigmoid flush denormal results
// to zero; gelu and gelu_grad (the exact erf form) to about 3e-7 absolute.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace echelon::kernels {

enum class Ew : std::uint8_t {
  // of two operands a, b
  add,
  sub,
  mul,
  div,
  max,
  min,
  greater,  // a > b ? 1 : 0
  // of one operand a, some with a constant c
  neg,
  abs,
  sign,  // -1, 0, 1
  square,
  sqrt,
  exp,
  log,
  scale,   // a * c
  offset,  // a + c
  clamp,   // into [-c, c]
  relu,
  leaky_relu,  // a > 0 ? a : c * a
  gelu,
  sigmoid,
  tanh,
  softplus,
  elu,  // a > 0 ? a : c * (exp(a) - 1)
  // gradients: a is what the forward step gave (y), except for gelu_grad where it is what it took (x); b is dy
  relu_grad,        // also "b where a > 0, else 0"
  leaky_relu_grad,  // c > 0
  gelu_grad,
  sigmoid_grad,
  tanh_grad,
  softplus_grad,
  elu_grad,  // c > 0
};

inline constexpr int ew_ops = static_cast<int>(Ew::elu_grad) + 1;
inline constexpr std::size_t max_ew_steps = 16;
inline constexpr std::size_t max_ew_inputs = 8;

constexpr int arity(Ew op) { return op <= Ew::greater || op >= Ew::relu_grad ? 2 : 1; }
std::string_view name_of(Ew op);

// An operand is the index of an input, or number of inputs + index of an earlier step. The last step is the result.
struct EwStep {
  Ew op = Ew::add;
  std::int16_t a = 0;
  std::int16_t b = -1;  // unused by steps of one operand
  float c = 0;          // the constant of scale, offset, clamp, leaky_relu, elu and their gradients
};

// Whether the limits hold and every operand exists. `elementwise` takes only such programs.
bool is_valid(std::span<const EwStep> program, std::size_t inputs);

// out[i] = program(in[0][i], in[1][i], ...). `out` may be the same memory as an input, but must not overlap otherwise.
void elementwise(std::span<const EwStep> program, std::span<const float* const> in, float* out, std::size_t n);

// The same in plain loops, each step computed in double precision and rounded to float.
void ref_elementwise(std::span<const EwStep> program, std::span<const float* const> in, float* out, std::size_t n);

// One step in double precision; what every op means.
double ref_apply(Ew op, double a, double b, double c);

}  // namespace echelon::kernels
