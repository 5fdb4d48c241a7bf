#include "kernels/elementwise.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

// out = op(a, b, c) over n elements, one loop per op so that nothing is decided inside.
HWY_FLATTEN void apply(const EwStep& step, const float* a, const float* b, float* out, std::size_t n) {
  const V zero = hn::Zero(D()), one = set(1.0f), c = set(step.c);
  // Few instructions an element: unrolled. Many: the processor overlaps the iterations by itself.
  const auto short1 = [&](const auto& f)
                          HWY_ATTR { for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(f(at.load(a)), out); }); };
  const auto short2 = [&](const auto& f) HWY_ATTR {
    for_each_vector<4>(n, [&](auto at) HWY_ATTR { at.store(f(at.load(a), at.load(b)), out); });
  };
  const auto long1 = [&](const auto& f)
                         HWY_ATTR { for_each_vector(n, [&](auto at) HWY_ATTR { at.store(f(at.load(a)), out); }); };
  const auto long2 = [&](const auto& f) HWY_ATTR {
    for_each_vector(n, [&](auto at) HWY_ATTR { at.store(f(at.load(a), at.load(b)), out); });
  };

  switch (step.op) {
    case Ew::add: return short2([&](V x, V y) HWY_ATTR { return hn::Add(x, y); });
    case Ew::sub: return short2([&](V x, V y) HWY_ATTR { return hn::Sub(x, y); });
    case Ew::mul: return short2([&](V x, V y) HWY_ATTR { return hn::Mul(x, y); });
    case Ew::div: return short2([&](V x, V y) HWY_ATTR { return hn::Div(x, y); });
    // Max and Min return their second operand when one is NaN; the first is looked at on top.
    case Ew::max: return short2([&](V x, V y) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, y)); });
    case Ew::min: return short2([&](V x, V y) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(x, y)); });
    case Ew::greater: return short2([&](V x, V y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(x, y), one); });
    case Ew::neg: return short1([&](V x) HWY_ATTR { return hn::Neg(x); });
    case Ew::abs: return short1([&](V x) HWY_ATTR { return hn::Abs(x); });
    case Ew::sign:
      return short1([&](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), set(-1.0f), x));
      });
    case Ew::square: return short1([&](V x) HWY_ATTR { return hn::Mul(x, x); });
    case Ew::sqrt: return short1([&](V x) HWY_ATTR { return hn::Sqrt(x); });
    case Ew::exp: return long1([&](V x) HWY_ATTR { return fast_exp(x); });
    case Ew::log: return long1([&](V x) HWY_ATTR { return fast_log(x); });
    case Ew::scale: return short1([&](V x) HWY_ATTR { return hn::Mul(x, c); });
    case Ew::offset: return short1([&](V x) HWY_ATTR { return hn::Add(x, c); });
    case Ew::clamp: return short1([&](V x) HWY_ATTR { return clamp_keeping_nan(x, -step.c, step.c); });
    case Ew::relu: return short1([&](V x) HWY_ATTR { return hn::Max(zero, x); });
    case Ew::leaky_relu: return short1([&](V x) HWY_ATTR { return hn::IfThenElse(hn::Gt(x, zero), x, hn::Mul(c, x)); });
    case Ew::gelu: return long1([&](V x) HWY_ATTR { return fast_gelu(x); });
    case Ew::sigmoid: return long1([&](V x) HWY_ATTR { return fast_sigmoid(x); });
    case Ew::tanh: return long1([&](V x) HWY_ATTR { return fast_tanh(x); });
    case Ew::softplus: return long1([&](V x) HWY_ATTR { return fast_softplus(x); });
    case Ew::elu:
      return long1([&](V x) HWY_ATTR {
        const V below = hn::Mul(c, fast_expm1(clamp_keeping_nan(x, -87.0f, 0.0f)));
        return hn::IfThenElse(hn::Gt(x, zero), x, below);
      });
    case Ew::relu_grad: return short2([&](V y, V dy) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, zero), dy); });
    case Ew::leaky_relu_grad:
      return short2([&](V y, V dy) HWY_ATTR { return hn::IfThenElse(hn::Gt(y, zero), dy, hn::Mul(c, dy)); });
    case Ew::gelu_grad: return long2([&](V x, V dy) HWY_ATTR { return hn::Mul(dy, fast_gelu_slope(x)); });
    case Ew::sigmoid_grad: return short2([&](V y, V dy) HWY_ATTR { return hn::Mul(hn::Mul(dy, y), hn::Sub(one, y)); });
    case Ew::tanh_grad: return short2([&](V y, V dy) HWY_ATTR { return hn::Mul(dy, hn::NegMulAdd(y, y, one)); });
    case Ew::softplus_grad:
      return long2([&](V y, V dy) HWY_ATTR {
        return hn::Mul(dy, hn::Neg(fast_expm1(clamp_keeping_nan(hn::Neg(y), -87.0f, 0.0f))));
      });
    case Ew::elu_grad:
      return short2([&](V y, V dy)
                        HWY_ATTR { return hn::IfThenElse(hn::Gt(y, zero), dy, hn::Mul(dy, hn::Add(y, c))); });
  }
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/error.h"

namespace echelon::kernels {

HWY_EXPORT(apply);

std::string_view name_of(Ew op) {
  static constexpr std::string_view names[ew_ops] = {"add",        "sub",
                                                     "mul",        "div",
                                                     "max",        "min",
                                                     "greater",    "neg",
                                                     "abs",        "sign",
                                                     "square",     "sqrt",
                                                     "exp",        "log",
                                                     "scale",      "offset",
                                                     "clamp",      "relu",
                                                     "leaky_relu", "gelu",
                                                     "sigmoid",    "tanh",
                                                     "softplus",   "elu",
                                                     "relu_grad",  "leaky_relu_grad",
                                                     "gelu_grad",  "sigmoid_grad",
                                                     "tanh_grad",  "softplus_grad",
                                                     "elu_grad"};
  return names[static_cast<int>(op)];
}

bool is_valid(std::span<const EwStep> program, std::size_t inputs) {
  if (program.empty() || program.size() > max_ew_steps || inputs == 0 || inputs > max_ew_inputs) return false;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto known = static_cast<int>(inputs + i);
    const EwStep& step = program[i];
    if (step.a < 0 || step.a >= known) return false;
    if (arity(step.op) == 2 && (step.b < 0 || step.b >= known)) return false;
  }
  return true;
}

void elementwise(std::span<const EwStep> program, std::span<const float* const> in, float* out, std::size_t n) {
  invariant(is_valid(program, in.size()), "an element-wise program whose operands exist");
  const auto run = HWY_DYNAMIC_DISPATCH(apply);
  const auto inputs = static_cast<int>(in.size());
  if (program.size() == 1) {
    const EwStep& step = program[0];
    return run(step, in[step.a], arity(step.op) == 2 ? in[step.b] : nullptr, out, n);
  }

  // Tile by tile: a tile of every input and of what lies between fits in the first-level cache.
  constexpr std::size_t tile = 512;
  alignas(64) float between[max_ew_steps - 1][tile];
  for (std::size_t begin = 0; begin < n; begin += tile) {
    const auto operand = [&](int index) -> const float* {
      return index < inputs ? in[index] + begin : between[index - inputs];
    };
    for (std::size_t s = 0; s < program.size(); ++s) {
      const EwStep& step = program[s];
      float* result = s + 1 == program.size() ? out + begin : between[s];
      run(step, operand(step.a), arity(step.op) == 2 ? operand(step.b) : nullptr, result,
          begin + tile < n ? tile : n - begin);
    }
  }
}

}  // namespace echelon::kernels
#endif
