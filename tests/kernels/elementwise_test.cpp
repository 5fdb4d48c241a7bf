#include "kernels/elementwise.h"

#include <limits>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// How far a step may be from its exact value: relative, and absolute where the result passes through zero.
struct Tolerance {
  double relative = 0, absolute = 0;
};
Tolerance tolerance(Ew op) {
  switch (op) {
    case Ew::exp:
    case Ew::sigmoid: return {1e-6, 1.2e-38};  // denormal results are flushed
    case Ew::log:
    case Ew::tanh:
    case Ew::softplus:
    case Ew::elu:
    case Ew::softplus_grad:
    case Ew::elu_grad: return {1e-6, 1.2e-38};
    case Ew::gelu: return {1e-6, 1e-6};
    case Ew::gelu_grad: return {1e-6, 1.5e-6};  // |dy| up to 3
    case Ew::sigmoid_grad:
    case Ew::tanh_grad: return {1e-6, 3e-7};  // 1 - y cancels
    default: return {0, 0};
  }
}

std::vector<Ew> all_ops() {
  std::vector<Ew> ops;
  for (int i = 0; i < ew_ops; ++i) ops.push_back(static_cast<Ew>(i));
  return ops;
}

// The range of first operands that an op is made for.
Fenced first_operand(Ew op, std::size_t n) {
  if (op == Ew::log || op == Ew::sqrt || op == Ew::softplus_grad) return fenced_values(n, 1, 0, 5);
  if (op == Ew::sigmoid_grad) return fenced_values(n, 1, 0, 1);
  if (op == Ew::tanh_grad || op == Ew::elu_grad) return fenced_values(n, 1, -0.7f, 1);
  return fenced_values(n, 1, -6, 6);
}

TEST(Elementwise, EveryStepEqualsItsReference) {
  on_every_target([] {
    for (const Ew op : all_ops())
      for (const std::size_t n : odd_sizes) {
        SCOPED_TRACE(std::string(name_of(op)));
        const Fenced a = first_operand(op, n), b = fenced_values(n, 2);
        Fenced got(n), want(n);
        const EwStep step{op, 0, 1, 0.7f};
        const float* in[] = {a.data(), b.data()};
        elementwise({&step, 1}, in, got.data(), n);
        ref_elementwise({&step, 1}, in, want.data(), n);
        expect_close(got, want, tolerance(op).relative, tolerance(op).absolute);
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Elementwise, GradientsAgreeWithFiniteDifferences) {
  struct Pair {
    Ew forward, gradient;
    bool takes_x;
  };
  const Pair pairs[] = {{Ew::relu, Ew::relu_grad, false}, {Ew::leaky_relu, Ew::leaky_relu_grad, false},
                        {Ew::gelu, Ew::gelu_grad, true},  {Ew::sigmoid, Ew::sigmoid_grad, false},
                        {Ew::tanh, Ew::tanh_grad, false}, {Ew::softplus, Ew::softplus_grad, false},
                        {Ew::elu, Ew::elu_grad, false}};
  for (const auto& [forward, gradient, takes_x] : pairs)
    for (double x = -5.05; x < 5; x += 0.1) {
      const double c = 0.3, h = 1e-5, dy = 1.7;
      const double slope = (ref_apply(forward, x + h, 0, c) - ref_apply(forward, x - h, 0, c)) / (2 * h);
      const double y = ref_apply(forward, x, 0, c);
      EXPECT_NEAR(ref_apply(gradient, takes_x ? x : y, dy, c), dy * slope, 1e-8) << name_of(gradient) << " at " << x;
    }
}

// Every float in steps of a prime number of representable values, both signs: the whole range, extremes included.
std::vector<float> sweep() {
  std::vector<float> v = {0.0f,     -0.0f,  infinity, -infinity, nan,  1.0f, -1.0f,
                          88.7228f, 88.73f, -87.33f,  -87.4f,    5.2f, -5.2f};
  for (std::uint32_t bits = 1; bits < 0x7F800000; bits += 20011)
    for (const std::uint32_t sign : {0u, 0x80000000u}) v.push_back(std::bit_cast<float>(bits | sign));
  for (float x = -100; x < 100; x += 0.0037f) v.push_back(x);
  return v;
}

TEST(Elementwise, FunctionsAreAccurateOverTheWholeRange) {
  const Fenced x(sweep());
  on_every_target([&] {
    for (const Ew op : {Ew::exp, Ew::log, Ew::sigmoid, Ew::tanh, Ew::softplus, Ew::elu, Ew::relu, Ew::sign, Ew::abs}) {
      const EwStep step{op, 0, -1, 1.5f};
      const float* in[] = {x.data()};
      Fenced y(x.size());
      elementwise({&step, 1}, in, y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto want = static_cast<float>(ref_apply(op, x[i], 0, 1.5));
        ASSERT_TRUE(is_close(y[i], want, 1e-6, 1.2e-38))
            << name_of(op) << "(" << x[i] << ") = " << y[i] << ", not " << want;
      }
    }
  });
}

TEST(Elementwise, GeluIsAccurateAbsolutelyAndExactFarOut) {
  const Fenced x(sweep());
  const Fenced one(x.size(), 1);
  on_every_target([&] {
    const EwStep gelu{Ew::gelu, 0, -1, 0}, slope{Ew::gelu_grad, 0, 1, 0};
    const float* in[] = {x.data(), one.data()};
    Fenced y(x.size()), dy(x.size());
    elementwise({&gelu, 1}, in, y.data(), x.size());
    elementwise({&slope, 1}, in, dy.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isinf(x[i])) continue;
      ASSERT_TRUE(is_close(y[i], ref_apply(Ew::gelu, x[i], 0, 0), 3e-7, 1e-44 + 2e-7 * std::min(5.3f, std::fabs(x[i]))))
          << x[i] << " " << y[i];
      ASSERT_TRUE(is_close(dy[i], ref_apply(Ew::gelu_grad, x[i], 1, 0), 0, 6e-7)) << x[i] << " " << dy[i];
    }
  });
}

TEST(Elementwise, NanGoesThroughEveryStep) {
  const float values[] = {nan, 1, nan}, others[] = {1, nan, nan};
  on_every_target([&] {
    for (const Ew op : all_ops()) {
      if (op == Ew::greater || op == Ew::relu_grad) continue;  // conditions
      for (int i = 0; i < 3; ++i) {
        if (arity(op) == 1 && i == 1) continue;
        if (i == 0 && (op == Ew::leaky_relu_grad)) continue;
        const EwStep step{op, 0, 1, 1};
        const float* in[] = {values + i, others + i};
        float y = 0;
        elementwise({&step, 1}, in, &y, 1);
        EXPECT_TRUE(std::isnan(y)) << name_of(op) << " case " << i;
      }
    }
  });
}

// gelu(x + bias) * mask - x, with a value used twice: fused must equal step by step.
TEST(Elementwise, AFusedProgramEqualsItsStepsOneByOne) {
  const EwStep program[] = {{Ew::add, 0, 1, 0}, {Ew::gelu, 3, -1, 0}, {Ew::mul, 4, 2, 0},
                            {Ew::sub, 5, 0, 0}, {Ew::tanh, 6, -1, 0}, {Ew::add, 7, 3, 0}};
  on_every_target([&] {
    for (const std::size_t n : odd_sizes) {
      const Fenced x = fenced_values(n, 1), bias = fenced_values(n, 2), mask = fenced_values(n, 3);
      Fenced got(n);
      const float* in[] = {x.data(), bias.data(), mask.data()};
      elementwise(program, in, got.data(), n);

      std::vector<Fenced> values = {x, bias, mask};
      for (const EwStep& step : program) {
        const EwStep alone{step.op, 0, 1, step.c};
        const float* operands[] = {values[step.a].data(), values[step.b < 0 ? 0 : step.b].data()};
        Fenced y(n);
        elementwise({&alone, 1}, operands, y.data(), n);
        values.push_back(y);
      }
      expect_same(got, values.back());
    }
  });
}

TEST(Elementwise, TheResultMayOverwriteAnyInput) {
  const EwStep program[] = {{Ew::add, 0, 1, 0}, {Ew::sigmoid, 2, -1, 0}, {Ew::mul, 3, 1, 0}, {Ew::sub, 4, 0, 0}};
  for (const std::size_t n : std::vector<std::size_t>{1, 17, 513, 2000})
    for (const std::size_t steps : {1, 4})
      for (const int over : {0, 1}) {
        Fenced a = fenced_values(n, 1), b = fenced_values(n, 2), want(n);
        const float* in[] = {a.data(), b.data()};
        const std::span<const EwStep> part(program, steps);
        elementwise(part, in, want.data(), n);
        float* out = over == 0 ? a.data() : b.data();
        elementwise(part, in, out, n);
        expect_same(over == 0 ? a : b, want);
      }
}

TEST(Elementwise, AnElementDoesNotDependOnItsPosition) {
  const EwStep program[] = {{Ew::gelu, 0, -1, 0}, {Ew::exp, 1, -1, 0}, {Ew::mul, 2, 0, 0}};
  const Fenced x = fenced_values(1500, 1);
  Fenced whole(1500), split(1500);
  const float* in[] = {x.data()};
  elementwise(program, in, whole.data(), 1500);
  for (std::size_t begin = 0, length = 1; begin < 1500; begin += length, length = length * 2 + 1) {
    const float* part[] = {x.data() + begin};
    elementwise(program, part, split.data() + begin, std::min<std::size_t>(length, 1500 - begin));
  }
  expect_same(split, whole);
}

TEST(Elementwise, ValidityIsChecked) {
  const EwStep self{Ew::neg, 1, -1, 0}, missing{Ew::add, 0, -1, 0}, fine{Ew::add, 0, 0, 0};
  EXPECT_FALSE(is_valid({&self, 1}, 1));
  EXPECT_FALSE(is_valid({&missing, 1}, 1));
  EXPECT_FALSE(is_valid({}, 1));
  EXPECT_FALSE(is_valid({&fine, 1}, 0));
  EXPECT_FALSE(is_valid({&fine, 1}, max_ew_inputs + 1));
  EXPECT_FALSE(is_valid(std::vector<EwStep>(max_ew_steps + 1, fine), 1));
  EXPECT_TRUE(is_valid(std::vector<EwStep>(max_ew_steps, fine), 1));
}

TEST(Elementwise, LongestProgramRuns) {
  const std::vector<EwStep> program = [] {
    std::vector<EwStep> p;
    for (std::size_t i = 0; i < max_ew_steps; ++i) p.push_back({Ew::offset, static_cast<std::int16_t>(i), -1, 1});
    return p;
  }();
  const Fenced x = fenced_values(1111, 1);
  Fenced y(1111);
  const float* in[] = {x.data()};
  elementwise(program, in, y.data(), 1111);
  for (std::size_t i = 0; i < 1111; ++i) EXPECT_NEAR(y[i], x[i] + 16, 1e-4);
}

}  // namespace
}  // namespace echelon::kernels
