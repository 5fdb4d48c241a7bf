#include "graph/ops/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "graph/attributes.h"
#include "graph/ops/elementwise.h"
#include "kernels/quantise.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon::ops {

namespace {

constexpr float everything = std::numeric_limits<float>::infinity();

// Where a value was not cut off, and the gradient passes.
struct Passes {
  float least = -everything, most = everything;
};

// dx from (x, dy).
class PassBetween : public Op {
 public:
  explicit PassBetween(Passes p) : p_(p) {}
  std::string_view name() const override { return "pass_between"; }
  std::string detail() const override { return fmt::format("{} {}", p_.least, p_.most); }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int) const override { return 1; }
  Kernel compile(const Operands& o) const override {
    return [p = p_, x = o.in[0].f32(), dy = o.in[1].f32(), dx = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext&) { kernels::pass_between(p.least, p.most, x, dy, dx, n); };
  }

 private:
  Passes p_;
};

// What all quantisers share: any shape, and the straight-through gradient.
class StraightThrough : public Op {
 public:
  explicit StraightThrough(Passes passes = {}) : passes_(passes) {}
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].dtype != DType::f32) bad_input("needs numbers (f32), not {}", to_string(in[0]));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    if (passes_.least == -everything && passes_.most == everything) return {d_out[0]};
    return {g.add_one(std::make_shared<PassBetween>(passes_), {node.in[0], d_out[0]})};
  }
  int overwrites(int) const override { return 0; }

 private:
  Passes passes_;
};

kernels::Steps whole_numbers(int bits, float step) {
  const float most = std::ldexp(1.0f, bits - 1);
  return {.in_scale = 1 / step, .least = -most, .most = most - 1, .out_scale = step};
}

// Element by element, so in any layout.
class UnitSteps : public StraightThrough, public WithAttributes {
 public:
  explicit UnitSteps(int bits) : StraightThrough({0, 1}), levels_(std::ldexp(1.0f, bits) - 1) {}
  std::string_view name() const override { return "unit_steps"; }
  Attributes attributes() const override { return {{"levels", double{levels_}}}; }
  std::string detail() const override { return fmt::format("{}", levels_); }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  Kernel compile(const Operands& o) const override {
    const kernels::Steps s{.in_scale = levels_, .most = levels_, .out_scale = 1 / levels_};
    return [s, x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      kernels::round_to_steps(s, x, y, n);
    };
  }

 private:
  float levels_;
};

// 2^bits steps from -m to m, m = max|x|; divided by m unless the scale is kept.
class PeakSteps : public StraightThrough, public WithAttributes {
 public:
  PeakSteps(int bits, bool keep_scale) : levels_(std::ldexp(1.0f, bits) - 1), keep_scale_(keep_scale) {}
  std::string_view name() const override { return "peak_steps"; }
  Attributes attributes() const override { return {{"levels", double{levels_}}, {"keep_scale", keep_scale_}}; }
  std::string detail() const override { return fmt::format("{}{}", levels_, keep_scale_ ? "" : " to one"); }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override;
  Kernel compile(const Operands& o) const override {
    return [levels = levels_, keep = keep_scale_, x = o.in[0].f32(), y = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext&) {
      const float peak = kernels::max_abs(x, n), size = keep ? peak : 1;
      if (peak == 0) return std::fill_n(y, n, 0.0f), void();
      kernels::round_to_steps({.in_scale = levels / (2 * peak),
                               .in_offset = levels / 2,
                               .most = levels,
                               .out_scale = 2 * size / levels,
                               .out_offset = -size},
                              x, y, n);
    };
  }

 private:
  float levels_;
  bool keep_scale_;
};

// dy / max|x|, from (x, dy).
class OverPeak : public Op {
 public:
  std::string_view name() const override { return "over_peak"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 1; }
  Kernel compile(const Operands& o) const override {
    return [x = o.in[0].f32(), dy = o.in[1].f32(), dx = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      const float peak = kernels::max_abs(x, n);
      kernels::scale(dx, dy, peak == 0 ? 0 : 1 / peak, n);
    };
  }
};

std::vector<Value> PeakSteps::gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                                       const std::vector<bool>&) const {
  if (keep_scale_) return {d_out[0]};
  return {g.add_one(std::make_shared<OverPeak>(), {node.in[0], d_out[0]})};
}

// The sign, times the mean |x| if the scale is kept.
class Sign : public StraightThrough, public WithAttributes {
 public:
  Sign(bool keep_scale, Passes passes) : StraightThrough(passes), keep_scale_(keep_scale) {}
  std::string_view name() const override { return "binary"; }
  Attributes attributes() const override { return {{"keep_scale", keep_scale_}}; }
  std::string detail() const override { return keep_scale_ ? "scaled" : ""; }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override {
    return keep_scale_ ? Op::layouts(in, out) : follow_inputs(in, out);
  }
  Kernel compile(const Operands& o) const override {
    return [keep = keep_scale_, x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      const double size = keep ? kernels::above(-1, x, n).sum / static_cast<double>(n) : 1;
      kernels::signs(static_cast<float>(size), x, y, n);
    };
  }

 private:
  bool keep_scale_;
};

class Ternary : public StraightThrough {
 public:
  std::string_view name() const override { return "ternary"; }
  Kernel compile(const Operands& o) const override {
    return [x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      const double mean = kernels::above(-1, x, n).sum / static_cast<double>(n);
      const auto threshold = static_cast<float>(0.7 * mean);
      const kernels::Above kept = kernels::above(threshold, x, n);
      kernels::three_values(threshold, kept.count > 0 ? static_cast<float>(kept.sum / kept.count) : 0, x, y, n);
    };
  }
};

class SharedExponent : public StraightThrough, public WithAttributes {
 public:
  explicit SharedExponent(int bits) : bits_(bits) {}
  std::string_view name() const override { return "shared_exponent"; }
  Attributes attributes() const override { return {{"bits", bits_}}; }
  std::string detail() const override { return fmt::format("{} bits", bits_); }
  Kernel compile(const Operands& o) const override {
    return [bits = bits_, x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      const float peak = kernels::max_abs(x, n);
      if (peak == 0) return std::fill_n(y, n, 0.0f), void();
      int exponent = 0;
      std::frexp(peak, &exponent);  // peak < 2^exponent
      // An exponent below float's own range would make the step vanish; what is no number stays none.
      const float step = std::isfinite(peak) ? std::ldexp(1.0f, std::max(exponent - (bits - 1), -126)) : peak - peak;
      kernels::round_to_steps(whole_numbers(bits, step), x, y, n);
    };
  }

 private:
  int bits_;
};

class FixedPoint : public StraightThrough, public WithAttributes {
 public:
  // `stream`: 0 rounds to the nearest.
  FixedPoint(int bits, int fraction, std::uint32_t stream, bool same_on_all_shards)
      : StraightThrough(reach(bits, fraction)),
        bits_(bits),
        fraction_(fraction),
        stream_(stream),
        same_on_all_shards_(same_on_all_shards) {}
  std::string_view name() const override { return "fixed_point"; }
  Attributes attributes() const override { return {{"bits", bits_}, {"fraction", fraction_}}; }
  std::string detail() const override { return fmt::format("{} bits, {} behind the point", bits_, fraction_); }
  Kernel compile(const Operands& o) const override {
    const kernels::Steps s = whole_numbers(bits_, std::ldexp(1.0f, -fraction_));
    return [s, layer = stream_, same = same_on_all_shards_, x = o.in[0].f32(), y = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext& step) {
      if (layer == 0) return kernels::round_to_steps(s, x, y, n);
      const std::uint32_t shard = same ? 0 : step.shard;
      const Stream stream({.seed = step.seed, .step = step.step, .shard = shard, .layer = layer});
      kernels::round_by_chance(s, stream, x, y, n);
    };
  }

 private:
  static Passes reach(int bits, int fraction) {
    const kernels::Steps s = whole_numbers(bits, std::ldexp(1.0f, -fraction));
    return {s.least * s.out_scale, s.most * s.out_scale};
  }
  int bits_, fraction_;
  std::uint32_t stream_;
  bool same_on_all_shards_;
};

void check_bits(int bits, int least) {
  if (bits < least || bits > 24) bad_input("numbers of {} bits cannot be: from {} to 24", bits, least);
}

}  // namespace

Value dorefa_weights(Graph& g, Value w, int bits, bool keep_scale) {
  check_bits(bits, 1);
  if (bits == 1) return g.add_one(std::make_shared<Sign>(true, Passes{}), {w});
  return g.add_one(std::make_shared<PeakSteps>(bits, keep_scale), {tanh(g, w)});
}

Value dorefa_activations(Graph& g, Value x, int bits) {
  check_bits(bits, 1);
  return g.add_one(std::make_shared<UnitSteps>(bits), {x});
}

Value binary_weights(Graph& g, Value w, bool keep_scale) {
  return g.add_one(std::make_shared<Sign>(keep_scale, Passes{-1, 1}), {w});
}

Value binary_activations(Graph& g, Value x) { return g.add_one(std::make_shared<Sign>(false, Passes{-1, 1}), {x}); }

Value ternary_weights(Graph& g, Value w) { return g.add_one(std::make_shared<Ternary>(), {w}); }

Value shared_exponent(Graph& g, Value x, int bits) {
  check_bits(bits, 2);
  return g.add_one(std::make_shared<SharedExponent>(bits), {x});
}

Value fixed_point(Graph& g, Value x, int bits, int fraction, bool same_on_all_shards) {
  check_bits(bits, 2);
  if (fraction < -64 || fraction > 64) bad_input("{} bits behind the point cannot be: from -64 to 64", fraction);
  std::uint32_t stream = 0;
  if (g.training())
    stream = stream_layer((g.layer() + "/" + g.unique_name("rounding stream")).c_str()) | 1u;  // 0 is the nearest
  return g.add_one(std::make_shared<FixedPoint>(bits, fraction, stream, same_on_all_shards), {x});
}

}  // namespace echelon::ops
