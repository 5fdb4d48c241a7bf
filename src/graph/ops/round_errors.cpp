#include "graph/ops/round_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "graph/ops/autoflex.h"
#include "kernels/quantise.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon::ops {

namespace {

// dy in few bits. `by_sample`: every sample has the scale of its largest; else all have the same steps.
class RoundByChance : public Op {
 public:
  RoundByChance(kernels::Steps steps, bool by_sample, std::uint32_t stream)
      : steps_(steps), by_sample_(by_sample), stream_(stream) {}
  std::string_view name() const override { return "round_by_chance"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  int overwrites(int) const override { return 0; }
  Kernel compile(const Operands& o) const override {
    const auto samples = static_cast<std::size_t>(std::max<std::int64_t>(1, o.in[0].type.shape[0]));
    return [s = steps_, by_sample = by_sample_, layer = stream_, samples, dy = o.in[0].f32(), out = o.out[0].f32(),
            n = o.out[0].stored()](const StepContext& step) {
      const Stream stream({.seed = step.seed, .step = step.step, .shard = step.shard, .layer = layer});
      if (!by_sample) return kernels::round_by_chance(s, stream, dy, out, n);
      const std::size_t each = n / samples;
      for (std::size_t i = 0; i < samples; ++i) {
        const float peak = kernels::max_abs(dy + i * each, each);
        if (peak == 0) {
          std::fill_n(out + i * each, each, 0.0f);
          continue;
        }
        kernels::Steps own = s;  // of numbers between -1 and 1
        own.in_scale = s.in_scale / peak, own.out_scale = s.out_scale * peak, own.out_offset = s.out_offset * peak;
        Stream of_sample({.seed = step.seed ^ (i + 1) << 32, .step = step.step, .shard = step.shard, .layer = layer});
        kernels::round_by_chance(own, of_sample, dy + i * each, out + i * each, each);
      }
    };
  }

 private:
  kernels::Steps steps_;
  bool by_sample_;
  std::uint32_t stream_;
};

// Inputs behind the first one are what `rounded` needs besides the error.
class ErrorGate : public Op {
 public:
  using Rounded = std::function<Value(Graph&, const Node&, Value dy)>;
  explicit ErrorGate(Rounded rounded) : rounded_(std::move(rounded)) {}
  std::string_view name() const override { return "error_gate"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Layouts layouts(std::span<const Type> in, std::span<const Type> out) const override { return follow_inputs(in, out); }
  int overwrites(int) const override { return 0; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    std::vector<Value> d(node.in.size());
    d[0] = rounded_(g, node, d_out[0]);
    return d;
  }
  Kernel compile(const Operands& o) const override {
    return [x = o.in[0].f32(), y = o.out[0].f32(), n = o.out[0].stored()](const StepContext&) {
      if (x != y) kernels::copy(y, x, n);
    };
  }

 private:
  Rounded rounded_;
};

std::uint32_t error_stream(Graph& g) {
  return stream_layer((g.layer() + "/" + g.unique_name("error rounding stream")).c_str());
}

Value gate_errors(Graph& g, Value y, kernels::Steps steps, bool by_sample) {
  const std::uint32_t stream = error_stream(g);
  return g.add_one(std::make_shared<ErrorGate>([=](Graph& graph, const Node&, Value dy) {
                     return graph.add_one(std::make_shared<RoundByChance>(steps, by_sample, stream), {dy});
                   }),
                   {y});
}

void check_error_bits(int bits, int least) {
  if (bits < least || bits > 24) bad_input("errors of {} bits cannot be: from {} to 24", bits, least);
}

}  // namespace

Value fixed_point_errors(Graph& g, Value y, int bits, int fraction) {
  check_error_bits(bits, 2);
  const float most = std::ldexp(1.0f, bits - 1), step = std::ldexp(1.0f, -fraction);
  return gate_errors(g, y, {.in_scale = 1 / step, .least = -most, .most = most - 1, .out_scale = step}, false);
}

Value dorefa_errors(Graph& g, Value y, int bits) {
  check_error_bits(bits, 1);
  const float levels = std::ldexp(1.0f, bits) - 1;
  return gate_errors(
      g, y,
      {.in_scale = levels / 2, .in_offset = levels / 2, .most = levels, .out_scale = 2 / levels, .out_offset = -1},
      true);
}

Value autoflex_errors(Graph& g, Value y, int bits) {
  check_error_bits(bits, 2);
  return g.add_one(std::make_shared<ErrorGate>([bits](Graph& graph, const Node& node, Value dy) {
                     return autoflex_by(graph, dy, node.in[1], bits);
                   }),
                   {y, autoflex_peak(g, "error_peak")});
}

}  // namespace echelon::ops
