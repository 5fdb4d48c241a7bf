#include "kernels/update.h"

#include <array>
#include <functional>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

// Weights, gradient and up to two arrays of state, through three steps of a fast rule and of its twin.
struct State {
  Fenced w, g, s, t;
  explicit State(std::size_t n)
      : w(fenced_values(n, 1)), g(fenced_values(n, 2)), s(fenced_values(n, 3, 0, 1)), t(fenced_values(n, 4, 0, 1)) {}
};
using Rule = std::function<void(State&, std::size_t n, int step)>;

void expect_same_rule(const Rule& fast, const Rule& reference) {
  on_every_target([&] {
    for (const std::size_t n : odd_sizes) {
      State a(n), b(n);
      for (int step = 1; step <= 3; ++step) {
        fast(a, n, step);
        reference(b, n, step);
      }
      expect_same(a.w, b.w);
      expect_same(a.g, b.g);
      expect_same(a.s, b.s);
      expect_same(a.t, b.t);
    }
  });
}

constexpr SgdSettings sgd_settings{.lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .grad_scale = 0.3};
constexpr AdamSettings adam_settings{.lr = 0.01, .weight_decay = 0.1, .grad_scale = 0.3};

TEST(Update, EveryRuleGivesTheReferencesBits) {
  expect_same_rule([](State& x, std::size_t n, int) { sgd(sgd_settings, x.w.data(), x.g.data(), n); },
                   [](State& x, std::size_t n, int) { ref_sgd(sgd_settings, x.w.data(), x.g.data(), n); });
  expect_same_rule(
      [](State& x, std::size_t n, int) { momentum(sgd_settings, x.w.data(), x.g.data(), x.s.data(), n); },
      [](State& x, std::size_t n, int) { ref_momentum(sgd_settings, x.w.data(), x.g.data(), x.s.data(), n); });
  expect_same_rule(
      [](State& x, std::size_t n, int) { nesterov(sgd_settings, x.w.data(), x.g.data(), x.s.data(), n); },
      [](State& x, std::size_t n, int) { ref_nesterov(sgd_settings, x.w.data(), x.g.data(), x.s.data(), n); });
  expect_same_rule(
      [](State& x, std::size_t n, int) { lars(sgd_settings, 0.02, x.w.data(), x.g.data(), x.s.data(), n); },
      [](State& x, std::size_t n, int) { ref_lars(sgd_settings, 0.02, x.w.data(), x.g.data(), x.s.data(), n); });
  const AdagradSettings ada{.weight_decay = 0.01, .grad_scale = 0.3};
  expect_same_rule([&](State& x, std::size_t n, int) { adagrad(ada, x.w.data(), x.g.data(), x.s.data(), n); },
                   [&](State& x, std::size_t n, int) { ref_adagrad(ada, x.w.data(), x.g.data(), x.s.data(), n); });
  const AdadeltaSettings delta{.weight_decay = 0.01, .grad_scale = 0.3};
  expect_same_rule(
      [&](State& x, std::size_t n, int) { adadelta(delta, x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); },
      [&](State& x, std::size_t n, int) { ref_adadelta(delta, x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); });
  for (const double speed : {0.0, 0.9}) {
    const RmspropSettings rms{.momentum = speed, .weight_decay = 0.01, .grad_scale = 0.3};
    expect_same_rule(
        [&](State& x, std::size_t n, int) {
          rmsprop(rms, x.w.data(), x.g.data(), x.s.data(), speed == 0 ? nullptr : x.t.data(), n);
        },
        [&](State& x, std::size_t n, int) {
          ref_rmsprop(rms, x.w.data(), x.g.data(), x.s.data(), speed == 0 ? nullptr : x.t.data(), n);
        });
  }
  const auto at = [](int step) {
    AdamSettings s = adam_settings;
    s.step = step;
    return s;
  };
  expect_same_rule(
      [&](State& x, std::size_t n, int k) { adam(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); },
      [&](State& x, std::size_t n, int k) { ref_adam(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); });
  expect_same_rule(
      [&](State& x, std::size_t n, int k) { adamw(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); },
      [&](State& x, std::size_t n, int k) { ref_adamw(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), n); });
  expect_same_rule(
      [&](State& x, std::size_t n, int k) {
        lamb_direction(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), x.g.data(), n);
        lamb_apply(0.03, x.w.data(), x.g.data(), n);
      },
      [&](State& x, std::size_t n, int k) {
        ref_lamb_direction(at(k), x.w.data(), x.g.data(), x.s.data(), x.t.data(), x.g.data(), n);
        ref_lamb_apply(0.03, x.w.data(), x.g.data(), n);
      });
}

TEST(Update, ARangeMayBeSplitAnywhere) {
  const std::size_t n = 100;
  State whole(n), split(n);
  adamw(adam_settings, whole.w.data(), whole.g.data(), whole.s.data(), whole.t.data(), n);
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    end = std::min(n, begin * 2 + 1);
    adamw(adam_settings, split.w.data() + begin, split.g.data() + begin, split.s.data() + begin, split.t.data() + begin,
          end - begin);
  }
  expect_same(split.w, whole.w);
}

// Three steps with weight decay 0.1, against numbers that torch.optim gave for the same settings.
TEST(Update, RulesAgreeWithTorch) {
  constexpr std::size_t n = 4;
  using Weights = std::array<float, n>;
  using Step = std::function<void(float* w, const float* g, float* s, float* t, int step)>;
  const auto expect = [](const char* name, const Step& rule, const Weights& want) {
    Weights w = {0.5f, -1.25f, 2.0f, -0.03125f}, s{}, t{};
    const Weights g[] = {{0.1f, -2.0f, 0.003f, 5.0f}, {-0.4f, 1.5f, 0.002f, -3.0f}, {0.25f, 0.75f, -0.001f, 1.0f}};
    for (int step = 1; step <= 3; ++step) rule(w.data(), g[step - 1].data(), s.data(), t.data(), step);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(w[i], want[i], 4e-7 * std::fabs(want[i]) + 1e-8) << name << " " << i;
  };
  const SgdSettings plain{.lr = 0.1, .weight_decay = 0.1, .momentum = 0.9};
  expect("sgd", [&](float* w, const float* g, float*, float*, int) { sgd(plain, w, g, n); },
         {0.489948511f, -1.2403537f, 1.94020593f, -0.323371857f});
  expect("momentum", [&](float* w, const float* g, float* s, float*, int) { momentum(plain, w, g, s, n); },
         {0.496068478f, -1.00455379f, 1.88767827f, -0.898561776f});
  expect("nesterov", [&](float* w, const float* g, float* s, float*, int) { nesterov(plain, w, g, s, n); },
         {0.486535907f, -1.02736127f, 1.84044206f, -1.08496082f});
  expect(
      "adagrad",
      [&](float* w, const float* g, float* s, float*, int) { adagrad({.lr = 0.1, .weight_decay = 0.1}, w, g, s, n); },
      {0.431434989f, -1.2286911f, 1.77667916f, -0.0963724256f});
  expect("adadelta",
         [&](float* w, const float* g, float* s, float* t, int) { adadelta({.weight_decay = 0.1}, w, g, s, t, n); },
         {0.497122824f, -1.25067043f, 1.99034834f, -0.0329339653f});
  expect("rmsprop",
         [&](float* w, const float* g, float* s, float*, int) { rmsprop({.weight_decay = 0.1}, w, g, s, nullptr, n); },
         {0.431281686f, -1.2290777f, 1.77620697f, -0.0963247269f});
  expect("rmsprop with momentum",
         [&](float* w, const float* g, float* s, float* t, int) {
           rmsprop({.momentum = 0.9, .weight_decay = 0.1}, w, g, s, t, n);
         },
         {0.344591409f, -1.10771966f, 1.54513788f, -0.220529705f});
  expect("adam",
         [&](float* w, const float* g, float* s, float* t, int step) {
           adam({.lr = 0.01, .weight_decay = 0.1, .step = step}, w, g, s, t, n);
         },
         {0.492827833f, -1.23877382f, 1.97001398f, -0.0456850864f});
  expect("adamw",
         [&](float* w, const float* g, float* s, float* t, int step) {
           adamw({.lr = 0.01, .weight_decay = 0.1, .step = step}, w, g, s, t, n);
         },
         {0.494495302f, -1.23655713f, 1.96881342f, -0.0455890782f});
}

// LAMB with trust 1 and no decay is Adam; LARS with trust 1 is momentum.
TEST(Update, LayerwiseRulesReduceToTheirBase) {
  const std::size_t n = 37;
  State lamb(n), plain(n);
  const AdamSettings s{.lr = 0.01, .step = 3};
  Fenced direction(n);
  lamb_direction(s, lamb.w.data(), lamb.g.data(), lamb.s.data(), lamb.t.data(), direction.data(), n);
  lamb_apply(s.lr, lamb.w.data(), direction.data(), n);
  adam(s, plain.w.data(), plain.g.data(), plain.s.data(), plain.t.data(), n);
  expect_close(lamb.w, plain.w, 1e-6, 1e-7);

  State layer(n), base(n);
  lars(sgd_settings, 1, layer.w.data(), layer.g.data(), layer.s.data(), n);
  momentum(sgd_settings, base.w.data(), base.g.data(), base.s.data(), n);
  expect_same(layer.w, base.w);
}

}  // namespace
}  // namespace echelon::kernels
