#include <cmath>

#include "kernels/elementwise.h"

namespace echelon::kernels {

double ref_apply(Ew op, double a, double b, double c) {
  constexpr double sqrt_half = 0.70710678118654752440, inv_sqrt_2pi = 0.39894228040143267794;
  switch (op) {
    case Ew::add: return a + b;
    case Ew::sub: return a - b;
    case Ew::mul: return a * b;
    case Ew::div: return a / b;
    case Ew::max: return a > b || std::isnan(a) ? a : b;
    case Ew::min: return a < b || std::isnan(a) ? a : b;
    case Ew::greater: return a > b ? 1 : 0;
    case Ew::neg: return -a;
    case Ew::abs: return std::fabs(a);
    case Ew::sign: return a > 0 ? 1 : a < 0 ? -1 : a;
    case Ew::square: return a * a;
    case Ew::sqrt: return std::sqrt(a);
    case Ew::exp: return std::exp(a);
    case Ew::log: return std::log(a);
    case Ew::scale: return a * c;
    case Ew::offset: return a + c;
    case Ew::clamp: return a > c ? c : a < -c ? -c : a;
    case Ew::relu: return a < 0 ? 0 : a;
    case Ew::leaky_relu: return a > 0 ? a : c * a;
    case Ew::gelu: return 0.5 * a * std::erfc(-a * sqrt_half);
    case Ew::sigmoid: return 1 / (1 + std::exp(-a));
    case Ew::tanh: return std::tanh(a);
    case Ew::softplus: return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
    case Ew::elu: return a > 0 ? a : c * std::expm1(a);
    case Ew::relu_grad: return a > 0 ? b : 0;
    case Ew::leaky_relu_grad: return a > 0 ? b : c * b;
    case Ew::gelu_grad: return b * (0.5 * std::erfc(-a * sqrt_half) + a * inv_sqrt_2pi * std::exp(-0.5 * a * a));
    case Ew::sigmoid_grad: return b * a * (1 - a);
    case Ew::tanh_grad: return b * (1 - a * a);
    case Ew::softplus_grad: return b * -std::expm1(-a);
    case Ew::elu_grad: return a > 0 ? b : b * (a + c);
  }
  return 0;
}

void ref_elementwise(std::span<const EwStep> program, std::span<const float* const> in, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    float values[max_ew_inputs + max_ew_steps];
    std::size_t count = 0;
    for (const float* input : in) values[count++] = input[i];
    for (const EwStep& step : program) {
      const double b = arity(step.op) == 2 ? values[step.b] : 0;
      values[count++] = static_cast<float>(ref_apply(step.op, values[step.a], b, step.c));
    }
    out[i] = values[count - 1];
  }
}

}  // namespace echelon::kernels
