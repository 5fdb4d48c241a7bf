#include "graph/ops/autoflex.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/attributes.h"
#include "kernels/quantise.h"
#include "kernels/reduce.h"

namespace echelon::ops {

namespace {

// y and what the step contributes to the statistic, from (x, peak).
class Autoflex : public Op, public WithAttributes {
 public:
  explicit Autoflex(int bits) : bits_(bits) {}
  std::string_view name() const override { return "autoflex"; }
  Attributes attributes() const override { return {{"bits", bits_}}; }
  std::string detail() const override { return fmt::format("{} bits", bits_); }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[1].shape)}; }
  std::vector<Value> gradient(Graph&, const Node&, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {d_out[0], {}};
  }
  Kernel compile(const Operands& o) const override {
    return [bits = bits_, x = o.in[0].f32(), means = o.in[1].f32(), y = o.out[0].f32(), seen = o.out[1].f32(),
            n = o.out[0].stored()](const StepContext& step) {
      const float peak = kernels::max_abs(x, n);
      seen[0] = peak * step.share, seen[1] = peak * peak * step.share;
      const float bound = means[1] > 0 ? autoflex_bound(means[0], means[1]) : peak;
      if (bound == 0) return std::fill_n(y, n, 0.0f), void();
      const float width = std::isfinite(peak) ? autoflex_step(bound, bits) : peak - peak;  // no number stays none
      const float most = std::ldexp(1.0f, bits - 1);
      kernels::round_to_steps({.in_scale = 1 / width, .least = -most, .most = most - 1, .out_scale = width}, x, y, n);
    };
  }

 private:
  int bits_;
};

}  // namespace

float autoflex_bound(float mean, float mean_of_squares) {
  const float variance = std::max(0.0f, mean_of_squares - mean * mean);
  return 2 * (mean + 3 * std::sqrt(variance));
}

float autoflex_step(float bound, int bits) {
  int exponent = 0;
  std::frexp(bound, &exponent);  // bound < 2^exponent
  return std::ldexp(1.0f, std::max(exponent - (bits - 1), -126));
}

Value autoflex_peak(Graph& g, const char* name) {
  return g.parameter({.name = g.layer() + "." + g.unique_name(name),
                      .shape = {2},
                      .init = Init::zeros(),
                      .kind = Parameter::Kind::statistic,
                      .decays = false,
                      .rate = 0.125f});
}

Value autoflex_by(Graph& g, Value x, Value peak, int bits) {
  if (bits < 2 || bits > 24) bad_input("numbers of {} bits cannot be: from 2 to 24", bits);
  const auto out = g.add(std::make_shared<Autoflex>(bits), {x, peak});
  g.set_contribution(peak, out[1]);
  return out[0];
}

Value autoflex(Graph& g, Value x, int bits, const char* name) {
  return autoflex_by(g, x, autoflex_peak(g, name), bits);
}

}  // namespace echelon::ops
