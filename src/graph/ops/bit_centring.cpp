#include "graph/ops/bit_centring.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "kernels/quantise.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon::ops {

namespace {

enum class Stage { recentre, gather, move };

Stage stage_of(const BitCentring& how, const StepContext& step) {
  const std::uint32_t at = step.step % how.period;
  return at == 0 ? Stage::recentre : at <= how.gather ? Stage::gather : Stage::move;
}

// How far an offset may reach.
float reach(const BitCentring& how, const float* full, std::size_t n) {
  return static_cast<float>(std::sqrt(kernels::squared_norm(full, n)) / static_cast<double>(how.mu));
}

// d where the offset w - centre is within reach, else 0: what has come to the end of its range rests until the centre
// moves. `d` may be where the result goes.
void pass_within(float most, const float* w, const float* centre, const float* d, float* result, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) result[i] = std::fabs(w[i] - centre[i]) <= most ? d[i] : 0;
}

class BitCentringOp : public Op {
 public:
  explicit BitCentringOp(const BitCentring& how) : how_(how) {}
  std::vector<Type> infer(std::span<const Type> in) const override {
    for (const Type& t : in)
      if (!(t.shape == in[0].shape))
        bad_input("weights {} have no centre {}", to_string(in[0].shape), to_string(t.shape));
    return {f32(in[0].shape)};
  }

 protected:
  BitCentring how_;
};

// dw from (weights, centre, full, dy), while weights move.
class AtOffsetGrad : public BitCentringOp {
 public:
  using BitCentringOp::BitCentringOp;
  std::string_view name() const override { return "at_offset_grad"; }
  Kernel compile(const Operands& o) const override {
    return [how = how_, w = o.in[0].f32(), centre = o.in[1].f32(), full = o.in[2].f32(), dy = o.in[3].f32(),
            dw = o.out[0].f32(), n = o.out[0].stored()](const StepContext& step) {
      if (stage_of(how, step) != Stage::move) return kernels::fill(dw, 0, n);
      pass_within(reach(how, full, n), w, centre, dy, dw, n);
    };
  }
};

class AtOffset : public BitCentringOp {
 public:
  AtOffset(const BitCentring& how, std::uint32_t stream) : BitCentringOp(how), stream_(stream) {}
  std::string_view name() const override { return "at_offset"; }
  std::string detail() const override { return fmt::format("{} bits", how_.bits); }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<AtOffsetGrad>(how_), {node.in[0], node.in[1], node.in[2], d_out[0]}), {}, {}};
  }
  Kernel compile(const Operands& o) const override {
    return [how = how_, layer = stream_, w = o.in[0].f32(), centre = o.in[1].f32(), full = o.in[2].f32(),
            y = o.out[0].f32(), n = o.out[0].stored()](const StepContext& step) {
      if (stage_of(how, step) != Stage::move) return kernels::copy(y, w, n);
      const float most = reach(how, full, n), levels = std::ldexp(1.0f, how.bits - 1) - 1;
      if (most == 0) return kernels::copy(y, centre, n);
      for (std::size_t i = 0; i < n; ++i) y[i] = w[i] - centre[i];
      // One stream for all shards: there is one offset.
      kernels::round_by_chance(
          {.in_scale = levels / most, .least = -levels, .most = levels, .out_scale = most / levels},
          Stream({.seed = step.seed, .step = step.step, .layer = layer}), y, y, n);
      kernels::add(y, y, centre, n);
    };
  }

 private:
  std::uint32_t stream_;
};

// From (weights, centre, full, dy): what the weights' gradient gets, and what the step contributes to the full
// gradient.
class AtCentreGrad : public BitCentringOp {
 public:
  using BitCentringOp::BitCentringOp;
  std::string_view name() const override { return "at_centre_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    return [how = how_, w = o.in[0].f32(), centre = o.in[1].f32(), full = o.in[2].f32(), dy = o.in[3].f32(),
            dw = o.out[0].f32(), gathered = o.out[1].f32(), n = o.out[0].stored()](const StepContext& step) {
      const Stage stage = stage_of(how, step);
      kernels::scale(gathered, full, stage == Stage::recentre ? 0 : step.share, n);
      if (stage == Stage::gather) kernels::axpy(gathered, 1 / static_cast<float>(how.gather), dy, n);
      if (stage != Stage::move) return kernels::fill(dw, 0, n);
      kernels::copy(dw, gathered, n);
      kernels::axpy(dw, -1, dy, n);
      pass_within(reach(how, full, n), w, centre, dw, dw, n);
    };
  }
};

class AtCentre : public BitCentringOp {
 public:
  using BitCentringOp::BitCentringOp;
  std::string_view name() const override { return "at_centre"; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    const auto d = g.add(std::make_shared<AtCentreGrad>(how_), {node.in[0], node.in[1], node.in[2], d_out[0]});
    g.set_contribution(node.in[2], d[1]);
    return {d[0], {}, {}};
  }
  Kernel compile(const Operands& o) const override {
    return [centre = o.in[1].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      kernels::copy(y, centre, n);
    };
  }
};

// What a step contributes to the centre, from (weights, centre).
class Recentre : public BitCentringOp {
 public:
  using BitCentringOp::BitCentringOp;
  std::string_view name() const override { return "recentre"; }
  Kernel compile(const Operands& o) const override {
    return [how = how_, w = o.in[0].f32(), centre = o.in[1].f32(), y = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext& step) {
      kernels::scale(y, stage_of(how, step) == Stage::recentre ? w : centre, step.share, n);
    };
  }
};

}  // namespace

Value at_offset(Graph& g, const Centred& c, const BitCentring& how) {
  if (how.bits < 2 || how.bits > 24) bad_input("offsets of {} bits cannot be: from 2 to 24", how.bits);
  if (!(how.mu > 0)) bad_input("mu must be positive, not {}", how.mu);
  if (how.gather < 1 || how.period < how.gather + 2)
    bad_input("a period of {} steps, {} of them gathering, leaves none to move in", how.period, how.gather);
  const std::uint32_t stream = stream_layer((g.layer() + "/" + g.unique_name("rounding stream")).c_str());
  return g.add_one(std::make_shared<AtOffset>(how, stream), {c.weights, c.centre, c.full});
}

Value at_centre(Graph& g, const Centred& c, const BitCentring& how) {
  g.set_contribution(c.centre, g.add_one(std::make_shared<Recentre>(how), {c.weights, c.centre}));
  return g.add_one(std::make_shared<AtCentre>(how), {c.weights, c.centre, c.full});
}

}  // namespace echelon::ops
